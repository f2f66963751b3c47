package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"adit/internal/goodput"
	"adit/tunnel/link"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// measure asks a relay over a session for the speed of one way.
func (a *fakeAgent) measure(method string, body io.Reader) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://relay"+wire.PathSpeed, body)
	if err != nil {
		return 0, err
	}
	answer, err := a.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var p wire.Problem
		if err := json.NewDecoder(answer.Body).Decode(&p); err != nil {
			return 0, fmt.Errorf("status %d without a problem: %w", answer.StatusCode, err)
		}
		return 0, &p
	}
	if method == http.MethodGet {
		return goodput.Receive(answer.Body)
	}
	var speed wire.Speed
	err = json.NewDecoder(answer.Body).Decode(&speed)
	return speed.BytesPerSecond, err
}

// begin opens a session that says nothing yet.
func begin(t *testing.T, token wire.Token, kind link.Transport) *fakeAgent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := link.Dial(ctx, link.DialConfig{Relay: token.Relay, Fingerprint: token.Fingerprint, Transport: kind})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close("test over") })
	return &fakeAgent{tb: t, session: s, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.OpenStream(ctx) },
	}}}
}

func (a *fakeAgent) trial(token wire.Token) error {
	return a.call(http.MethodPost, wire.PathHello, wire.Hello{Protocol: wire.Protocol, Secret: token.Secret[:], Instance: "i1", Trial: true}, nil)
}

// A client's measurements are limited to its bandwidth, counted as its traffic, and
// refused when its traffic is used up.
func TestSpeedIsWhatVisitorsGet(t *testing.T) {
	const bandwidth = 200_000
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), usageFlush: 20 * time.Millisecond})
	a := connect(t, r.scoped(t, "shop", scope.Scope{Bandwidth: bandwidth}), "i1")
	usage := func() console.Usage {
		c, err := r.operator().Client("shop")
		if err != nil {
			t.Fatal(err)
		}
		return c.Usage
	}
	// Never more, and as much where the machine is not busy with something else.
	held := func(way, method string, body func() io.Reader) {
		eventually(t, way+" at the client's bandwidth", func() bool {
			speed, err := a.measure(method, body())
			if err != nil || speed > bandwidth*11/10 {
				t.Fatalf("%.0f bytes a second %s of %d, %v", speed, way, bandwidth, err)
			}
			t.Logf("%.0f bytes a second %s", speed, way)
			return speed >= bandwidth*8/10
		})
	}
	held("come", http.MethodGet, func() io.Reader { return nil })
	held("go", http.MethodPost, goodput.Source)
	if u := usage(); u.BytesIn < bandwidth || u.BytesOut < bandwidth {
		t.Errorf("counted are %+v", u)
	}

	r.rescope(t, "shop", scope.Scope{Monthly: 50_000, OverQuota: scope.OverStop})
	// What the operator is shown is counted anew; the account is told a moment later.
	eventually(t, "the client is stopped", func() bool {
		return usage().State == "stopped" && r.accounts.Of(a.welcome.ClientID).Stopped()
	})
	_, err := a.measure(http.MethodGet, nil)
	problem(t, err, wire.CodeForbidden)
	_, err = a.measure(http.MethodPost, goodput.Source())
	problem(t, err, wire.CodeForbidden)
}

// standing yields some bytes and then nothing until it is closed, like a path on which
// everything is lost.
type standing struct {
	left int
	end  <-chan struct{}
}

func (s *standing) Read(b []byte) (int, error) {
	if s.left == 0 {
		<-s.end
		return 0, io.EOF
	}
	n := min(len(b), s.left)
	s.left -= n
	return n, nil
}

// What arrived before a path stalled shows how fast it was, and the answer still arrives.
func TestSpeedOfAPathThatStandsStill(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	end := make(chan struct{})
	defer close(end)
	const came = 300_000
	got, err := a.measure(http.MethodPost, &standing{came, end})
	if most := float64(came) / goodput.Time.Seconds(); err != nil || got <= 0 || got > most {
		t.Errorf("%.0f bytes a second, at most %.0f, %v", got, most, err)
	}
}

// If a client is revoked while it measures the speed, its session ends like any other.
func TestTrialEndsWithItsClient(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	trial := begin(t, token, link.TLS)
	if err := trial.trial(token); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Clients().Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-trial.session.Done():
	case <-time.After(5 * time.Second): // it would have ended by itself later
		t.Error("it goes on")
	}
	eventually(t, "it is forgotten", func() bool {
		r.trials.mu.Lock()
		defer r.trials.mu.Unlock()
		return len(r.trials.open) == 0
	})
}

// A trial serves nobody and takes nobody's place.
func TestTrialMeasuresAndNoMore(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	a := connect(t, token, "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "served")
	})))
	for _, kind := range []link.Transport{link.DTLS, link.TLS} {
		b := begin(t, token, kind)
		_, err := b.measure(http.MethodGet, nil)
		problem(t, err, wire.CodeUnauthorized)

		bad := token
		bad.Secret[0] ^= 1
		stranger := begin(t, token, kind)
		problem(t, stranger.trial(bad), wire.CodeUnauthorized)
		_, err = stranger.measure(http.MethodGet, nil)
		problem(t, err, wire.CodeUnauthorized)

		trial := begin(t, token, kind)
		if err := trial.trial(token); err != nil {
			t.Fatal(err)
		}
		if down, err := trial.measure(http.MethodGet, nil); err != nil || down == 0 {
			t.Errorf("%s: %.0f bytes a second come, %v", kind, down, err)
		}
		if up, err := trial.measure(http.MethodPost, bytes.NewReader(make([]byte, 1<<20))); err != nil || up == 0 {
			t.Errorf("%s: %.0f bytes a second go, %v", kind, up, err)
		}
		problem(t, trial.call(http.MethodPut, wire.PathClaims+"other", wire.Claim{Type: wire.TypeHTTP, Domain: "other"}, nil), wire.CodeUnauthorized)
		if n := len(r.roster.All()); n != 1 {
			t.Errorf("%s: %d sessions beside a trial", kind, n)
		}
	}
	if status, body := get(t, r.visitor(t), g.PublicURL); status != http.StatusOK || body != "served" {
		t.Errorf("after trials, a visitor gets %d %q", status, body)
	}
}

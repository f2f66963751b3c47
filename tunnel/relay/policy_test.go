package relay

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/wire"
)

func (s *site) setPolicy(tb testing.TB, target, doc string) {
	tb.Helper()
	if _, err := s.operator().SetPolicy(tb.Context(), target, []byte(doc), nil); err != nil {
		tb.Fatalf("%s: %v", doc, err)
	}
}

func TestPolicyIsHeldAtTheEdge(t *testing.T) {
	seen := make(chan string, 100)
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil && n >= 0 {
			seen <- r.Header.Get("Authorization")
		}
	}))
	do := func(user, body string) int {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.https, io.MultiReader(strings.NewReader(body)))
		if user != "" {
			req.SetBasicAuth(user, "secret")
		}
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, c := range []struct {
		doc, user, body string
		status          int
		rule            string
	}{
		{`{"allow":["127.0.0.0/8"]}`, "", "", 200, ""},
		{`{"deny":["127.0.0.1"]}`, "", "", 403, "deny"},
		{`{"allow_countries":["DE"]}`, "", "", 403, "unknown_country"},
		{`{"deny":["127.0.0.1"],"shadow":true}`, "", "", 200, "shadow:deny"},
		{`{"basic_auth":[{"name":"ann","password":"secret"}]}`, "", "", 401, "basic_auth"},
		{`{"basic_auth":[{"name":"ann","password":"secret"}]}`, "eve", "", 401, "basic_auth"},
		{`{"basic_auth":[{"name":"ann","password":"secret"}]}`, "ann", "", 200, ""},
		{`{"basic_auth":[{"name":"ann"}]}`, "ann", "", 200, ""}, // keeps its password
		{`{"max_body":4}`, "", "12345", 413, ""},
		{`{"max_body":5}`, "", "12345", 200, ""},
		{`{"rate":0.001,"burst":1}`, "", "", 200, ""},
	} {
		s.setPolicy(t, "shop", c.doc)
		if got := do(c.user, c.body); got != c.status {
			t.Fatalf("%s as %q: status %d, want %d", c.doc, c.user, got, c.status)
		}
		if c.status == 200 {
			if auth := <-seen; auth != "" {
				t.Errorf("%s: the origin got %q", c.doc, auth)
			}
		} else if len(seen) > 0 {
			t.Errorf("%s: the request reached the origin", c.doc)
		}
		recorded(t, s.Relay, c.doc, func(e wire.Access) bool { return e.Refused == c.rule && e.Status == c.status })
	}
	if got := do("", ""); got != 429 { // of the rate
		t.Errorf("second of a rate: status %d", got)
	}
	if err := s.operator().DeletePolicy(t.Context(), "shop.relay.test", nil); err != nil {
		t.Fatal(err)
	}
	if got := do("", ""); got != 200 {
		t.Errorf("without a policy: status %d", got)
	}
}

func TestPolicyChangeEndsWhatIsOpen(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	s := &site{testRelay: r, token: r.client(t, "shop")}
	s.agent = connect(t, s.token, "i1")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
	g := s.agent.mustClaim("k", wire.Claim{Type: wire.TypeTCP}, ln.Addr().String())
	dial := func() net.Conn {
		c, err := net.Dial("tcp", hostOf(t, g.PublicURL))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(patience))
		return c
	}
	c := dial()
	c.Write([]byte("x"))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	target := strings.Replace(r.edge.Endpoints()[0].Target, "domain.", "", 1)
	start := time.Now()
	s.setPolicy(t, target, `{"deny":["127.0.0.1"]}`)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives on")
	}
	t.Logf("ended after %v", time.Since(start))
	refused := func() bool {
		c, err := net.Dial("tcp", hostOf(t, g.PublicURL))
		if err != nil {
			return true // reset before the system had handed it out
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		_, err = c.Read(make([]byte, 1))
		return err != nil
	}
	if !refused() {
		t.Error("a new connection is let in")
	}
	e, err := r.operator().Explain(console.Question{Target: target, Address: "127.0.0.1"})
	if err != nil || e.Allowed || e.Rule != "deny" {
		t.Errorf("explained as %+v, %v", e, err)
	}
	s.setPolicy(t, target, `{"connections":1}`)
	eventually(t, "a first connection is let in", func() bool { // the one before it may not yet be counted out
		one := dial()
		one.Write([]byte("x"))
		_, err := io.ReadFull(one, make([]byte, 1))
		return err == nil
	})
	if !refused() {
		t.Error("a second connection is let in")
	}
}

func TestMissingGeoDatabaseIsSaid(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Geo.Database = cfg.DataDir + "/none.mmdb"
	if _, err := New(Options{Config: cfg}); err == nil || !strings.Contains(err.Error(), "geo.database") {
		t.Errorf("got %v", err)
	}
	cfg.Geo.Database = "policy_test.go" // no database
	if _, err := New(Options{Config: cfg}); err == nil || !strings.Contains(err.Error(), "geo.database") {
		t.Errorf("got %v", err)
	}
}

// echoSite is a tcp tunnel whose origin sends back what it gets.
func echoSite(t *testing.T, r *testRelay) (target, address string) {
	t.Helper()
	origin := serveEach(t, func(c net.Conn) { io.Copy(c, c) })
	a := connect(t, r.client(t, "echo"), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeTCP}, origin)
	return fmt.Sprintf("tcp.%d", g.RemotePort), hostOf(t, g.PublicURL)
}

// echoed returns a connection to an echoSite that has had an answer.
func echoed(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	c.Write([]byte("x"))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBandwidthIsHeldOnWhatIsOpen sets a bandwidth while a connection is open, and
// removes it again. Nothing is refused or lost; excess bytes wait.
func TestBandwidthIsHeldOnWhatIsOpen(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	s := &site{testRelay: r}
	target, address := echoSite(t, r)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * patience))
	trip := func(size int) time.Duration {
		t.Helper()
		out, start := make([]byte, size), time.Now()
		rand.Read(out)
		go c.Write(out)
		back := make([]byte, size)
		if _, err := io.ReadFull(c, back); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out, back) {
			t.Fatal("other bytes came back")
		}
		return time.Since(start)
	}
	trip(1000)
	s.setPolicy(t, target, `{"bandwidth":100000}`)
	eventually(t, "the bandwidth reaches the endpoint", func() bool { return r.edge.Endpoints()[0].Meter.Bounded() })
	if took := trip(250_000); took < 1500*time.Millisecond {
		t.Errorf("250 kB at 100 kB/s took %v", took)
	}
	s.setPolicy(t, target, `{"bandwidth":100000,"shadow":true}`)
	free := trip(2_000_000)
	if free > 15*time.Second {
		t.Errorf("in shadow mode 2 MB took %v", free)
	}
	s.setPolicy(t, target, `{"bandwidth":1024}`)
	done := make(chan time.Duration, 1)
	before := r.edge.Endpoints()[0].Counters().BytesIn
	go func() { done <- trip(1_000_000) }()
	eventually(t, "some of it is under way", func() bool { return r.edge.Endpoints()[0].Counters().BytesIn > before })
	if err := r.operator().DeletePolicy(t.Context(), target, nil); err != nil {
		t.Fatal(err)
	}
	if took := <-done; took > 15*time.Second {
		t.Errorf("after the policy was deleted 1 MB took %v", took)
	}
}

// TestClosedHourEndsWhatIsOpen changes the hours while a connection is open.
func TestClosedHourEndsWhatIsOpen(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	s := &site{testRelay: r}
	target, address := echoSite(t, r)
	now := time.Now().UTC()
	s.setPolicy(t, target, `{"hours":{"open":[{"from":"00:00","to":"24:00"}]}}`)
	c := echoed(t, address)
	// Open on another day only: closed now.
	other := []string{"wed", "thu", "fri", "sat", "sun", "mon", "tue"}[int(now.Weekday())]
	s.setPolicy(t, target, `{"hours":{"open":[{"days":["`+other+`"],"from":"12:00","to":"12:01"}]}}`)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives on")
	}
	e, err := r.operator().Explain(console.Question{Target: target, Address: "127.0.0.1"})
	if err != nil || e.Allowed || e.Rule != "hours" {
		t.Errorf("explained as %+v, %v", e, err)
	}
}

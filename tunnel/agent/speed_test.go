package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/traffic"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// A network that lets less through by UDP is found out by a session that takes
// nobody's place.
func TestSpeedOfBothTransports(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := startAgent(t, Config{Transport: link.DTLS})
	wants(t, a, refusal.CodeNotConfigured)
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	before := r.session()
	wants(t, a, refusal.CodeRelayRejected) // it does not say that it can

	r.does(wire.FeatureSpeed)
	r.set(func() { r.speeds = map[link.Transport]float64{link.DTLS: 1e6, link.TLS: 4e6} })
	r.drop()
	eventually(t, "connected again", func() bool { return a.Status().Connected })
	now := r.session()
	got, err := a.MeasureSpeed(t.Context())
	if err != nil || len(got.Items) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, want := range []Speed{{Transport: "dtls", InUse: true, PerSecond: traffic.Bytes{Out: 1e6}}, {Transport: "tls", PerSecond: traffic.Bytes{Out: 4e6}}} {
		s := got.Items[i]
		if s.Transport != want.Transport || s.InUse != want.InUse || s.PerSecond.Out != want.PerSecond.Out || s.PerSecond.In == 0 || s.Error != "" {
			t.Errorf("got %+v, want %+v", s, want)
		}
	}
	if !strings.Contains(got.Advice, `transport = "tls"`) {
		t.Errorf("the advice is %q", got.Advice)
	}
	if r.session() != now || now == before || now.Err() != nil {
		t.Error("the session is another")
	}

	r.set(func() { r.refuse = &wire.Problem{Code: wire.CodeUnauthorized, Message: "not now"} })
	if got, err := a.MeasureSpeed(t.Context()); err != nil || !strings.Contains(got.Items[0].Error, "not now") || !strings.Contains(got.Items[1].Error, "not now") || got.Advice != "" {
		t.Errorf("with a trial that is refused: %+v, %v", got, err)
	}
}

func wants(t *testing.T, a *Agent, code string) {
	t.Helper()
	_, err := a.MeasureSpeed(t.Context())
	var e *refusal.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestSpeedWhereUDPIsBlocked(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeatureSpeed)
	waiting, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	a, _ := startAgent(t, Config{Dial: func(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
		if cfg.Transport == link.DTLS {
			once.Do(func() { close(waiting) })
			<-leave
			return nil, context.DeadlineExceeded
		}
		return link.Dial(ctx, cfg)
	}, Transport: link.TLS})
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		got, err := a.MeasureSpeed(t.Context())
		if err != nil || len(got.Items) != 2 || !strings.Contains(got.Items[0].Error, "no UDP gets through") || got.Items[1].Error != "" || !got.Items[1].InUse || got.Advice != "" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	<-waiting
	wants(t, a, refusal.CodeControlBusy) // one at a time
	close(leave)
	group.Wait()
}

func TestSpeedAdvice(t *testing.T) {
	const slow, fast = 1 << 20, 8 << 20
	for _, c := range []struct {
		name     string
		udp, tcp traffic.Bytes
		used     link.Transport
		set      link.Transport
		want     string
	}{
		{"as fast", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow * 5 / 4, Out: slow}, link.DTLS, link.Auto, ""},
		{"UDP is slowed", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.DTLS, link.Auto, `"tls"`},
		{"… and was left for now", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.TLS, link.Auto, `"tls"`},
		{"… and for good", traffic.Bytes{In: slow, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.TLS, link.TLS, ""},
		{"one way only, and faster the other", traffic.Bytes{In: fast, Out: slow}, traffic.Bytes{In: slow, Out: fast}, link.DTLS, link.Auto, ""},
		{"fast enough", traffic.Bytes{In: plenty, Out: plenty}, traffic.Bytes{In: 4 * plenty, Out: 4 * plenty}, link.DTLS, link.Auto, ""},
		{"TCP was chosen", traffic.Bytes{In: fast, Out: fast}, traffic.Bytes{In: slow, Out: slow}, link.TLS, link.TLS, `"auto"`},
		{"TCP was fallen back to", traffic.Bytes{In: fast, Out: fast}, traffic.Bytes{In: slow, Out: slow}, link.TLS, link.Auto, "reconnect"},
		{"UDP is used", traffic.Bytes{In: fast, Out: fast}, traffic.Bytes{In: slow, Out: slow}, link.DTLS, link.Auto, ""},
	} {
		udp, tcp := Speed{PerSecond: c.udp, InUse: c.used == link.DTLS}, Speed{PerSecond: c.tcp, InUse: c.used == link.TLS}
		if got := speedAdvice(udp, tcp, c.set); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		tcp.Error = "it broke"
		if got := speedAdvice(udp, tcp, c.set); got != "" {
			t.Errorf("%s, not measured: got %q", c.name, got)
		}
	}
}

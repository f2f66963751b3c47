package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"adit/tunnel/agent/diagnosis"
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
	for i, want := range []diagnosis.Speed{{Transport: "dtls", InUse: true, PerSecond: traffic.Bytes{Out: 1e6}}, {Transport: "tls", PerSecond: traffic.Bytes{Out: 4e6}}} {
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
		if err != nil || len(got.Items) != 2 || !strings.Contains(got.Items[0].Error, "UDP does not reach") || got.Items[1].Error != "" || !got.Items[1].InUse || got.Advice != "" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	<-waiting
	wants(t, a, refusal.CodeControlBusy) // one at a time
	close(leave)
	group.Wait()
}

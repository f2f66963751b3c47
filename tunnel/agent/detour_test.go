package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/link"
)

// wandering is a session that a test sends on a detour and back.
type wandering struct {
	link.Session
	away    *atomic.Bool
	changed chan struct{}
}

func (w wandering) Transport() link.Transport {
	if w.away.Load() {
		return link.TLS
	}
	return link.DTLS
}

func (w wandering) Stats() link.Stats {
	s := w.Session.Stats()
	s.Detour = w.away.Load()
	return s
}

func (w wandering) TransportChanged() <-chan struct{} { return w.changed }

// TestDetourIsToldAndLeftAlone: views learn of the transport in use, and the
// agent dials no other session, since this one returns by itself.
func TestDetourIsToldAndLeftAlone(t *testing.T) {
	r := newFakeRelay(t)
	var away atomic.Bool
	var dials atomic.Int64
	changed := make(chan struct{}, 1)
	a, err := New(Config{StateDir: t.TempDir(), Dial: func(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
		dials.Add(1)
		if !cfg.Detour {
			t.Error("the session may not take a detour")
		}
		cfg.Transport = link.TLS
		s, err := link.Dial(ctx, cfg)
		return wandering{s, &away, changed}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	wantState(t, a, StateConnected)
	events := a.Subscribe(nil)
	before := dials.Load()
	for _, want := range []string{"tls", "dtls"} {
		away.Store(want == "tls")
		changed <- struct{}{}
		for {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			e, err := events.Next(ctx)
			cancel()
			if err != nil {
				t.Fatalf("no status with transport %s came: %v", want, err)
			}
			if s, ok := e.Data.(Status); ok && s.Transport == want {
				break
			}
		}
		if want == "tls" { // when a session over TLS would be given up for DTLS
			a.mu.Lock()
			k := &keeper{agent: a, results: make(chan outcome), served: a.cur}
			a.mu.Unlock()
			var wg sync.WaitGroup
			if wait := k.step(t.Context(), &wg); k.attempt != nil || wait < time.Hour {
				t.Errorf("looks for another session, or will in %v", wait)
			}
			wg.Wait()
		}
	}
	if dials.Load() != before {
		t.Errorf("dialled %d times more, want none", dials.Load()-before)
	}
}

package agent

import (
	"context"
	"io"
	"sync"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// aging gives sessions that a test wears out.
type aging struct {
	mu   sync.Mutex
	worn map[link.Session]bool
}

type agingSession struct {
	link.Session
	by *aging
}

func (s agingSession) Stats() link.Stats {
	st := s.Session.Stats()
	s.by.mu.Lock()
	defer s.by.mu.Unlock()
	st.Worn = s.by.worn[s.Session]
	return st
}

func (g *aging) dial(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
	s, err := link.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return agingSession{s, g}, nil
}

// wear wears out a session of the agent's, and has it look.
func (g *aging) wear(a *Agent, which func() *live) {
	a.mu.Lock()
	s := which().Link.(agingSession).Session
	a.mu.Unlock()
	g.mu.Lock()
	g.worn = map[link.Session]bool{s: true}
	g.mu.Unlock()
	a.poke()
	a.wantSecond()
}

// TestWornSessionIsReplaced has a session use its keys up while a visitor stays.
func TestWornSessionIsReplaced(t *testing.T) {
	r := newFakeRelay(t)
	var g aging
	a, _ := configured(t, r, Config{Dial: g.dial})
	tun := mustCreate(t, a, definition.Tunnel{Type: wire.TypeTCP, LocalPort: service(t, echo)})
	stays, worn := r.mustVisit(tun.ID, wire.StreamRaw), r.session()
	g.wear(a, func() *live { return a.cur })
	eventually(t, "another session serves the tunnel", func() bool {
		if r.session() == worn {
			return false
		}
		visitor, err := r.visit(tun.ID, wire.StreamRaw)
		if err == nil {
			visitor.Reset()
		}
		return err == nil
	})
	if s := a.Status(); !s.Connected {
		t.Errorf("got %+v, want connected", s)
	}
	echoed := make([]byte, 5)
	if _, err := stays.Write([]byte("still")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stays, echoed); err != nil || string(echoed) != "still" {
		t.Fatalf("the visitor who was there got %q, %v", echoed, err)
	}
	stays.Close()
	eventually(t, "the worn session ends", func() bool { return worn.Err() != nil })
}

// TestWornSecondSessionIsReplaced has the second session come to that, where no
// third node is: the next is with the same one.
func TestWornSecondSessionIsReplaced(t *testing.T) {
	all := newFakeNodes(t, 2)
	var g aging
	a, _ := configured(t, all[0], Config{Dial: g.dial})
	tun := mustCreate(t, a, definition.Tunnel{Type: wire.TypeTCP, LocalPort: service(t, echo)})
	eventually(t, "the other node has the tunnel", func() bool { return all[1].serves(tun.ID) })
	worn := all[1].session()
	g.wear(a, func() *live { return a.second })
	eventually(t, "the worn session ends", func() bool { return worn.Err() != nil })
	eventually(t, "another session serves the tunnel", func() bool {
		if all[1].session() == worn {
			return false
		}
		visitor, err := all[1].visit(tun.ID, wire.StreamRaw)
		if err == nil {
			visitor.Reset()
		}
		return err == nil
	})
	if got := a.Status().Relay; got != all[0].addr {
		t.Errorf("the session in use is with %s, want %s", got, all[0].addr)
	}
}

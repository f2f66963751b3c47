package routing

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// services is an agent's session whose streams reach an origin, or are told that it
// is down.
type services struct {
	link.Session
	down atomic.Bool
}

func (s *services) Done() <-chan struct{} { return nil }
func (s *services) Err() error            { return nil }

func (s *services) OpenStream(context.Context) (link.Stream, error) {
	near, far := net.Pipe()
	var reason error
	if s.down.Load() {
		reason = errors.New("connection refused")
	}
	go func() {
		defer far.Close()
		b := make([]byte, 1024)
		if _, err := far.Read(b); err != nil { // the preface
			return
		}
		if _, err := far.Write(wire.AppendAnswer(nil, reason)); err != nil || reason != nil {
			return
		}
		for {
			if _, err := far.Read(b); err != nil {
				return
			}
		}
	}()
	return piped{near}, nil
}

type piped struct{ net.Conn }

func (s piped) CloseWrite() error { return s.Close() }
func (s piped) Reset()            { s.Close() }
func (s piped) Quiet() bool       { return true }

// sharedSite is a table with two agents behind one name, of which the first
// has no origin at first.
type sharedSite struct {
	table       *Table
	face        Face
	ep          *Endpoint
	first       *services
	down, other *Backend
}

func newSharedSite(t *testing.T) *sharedSite {
	t.Helper()
	s := &sharedSite{
		face:  Face{Target: store.TargetDomain("shop.test"), Slot: store.SlotTLS, Type: wire.TypeTLS, Mode: wire.ModeBalanced, Domain: "shop.test"},
		first: new(services),
	}
	var aside sync.WaitGroup
	life, end := context.WithCancel(context.Background())
	t.Cleanup(func() { // its probes end with the bubble
		end()
		aside.Wait()
	})
	asks := func(context.Context) (origin.Visit, bool) { return origin.Visit{}, true }
	s.table = New(Config{Life: life, Go: aside.Go, Asks: asks, Log: slog.New(slog.DiscardHandler)})
	s.first.down.Store(true)
	s.down = &Backend{Key: "k", Agent: &Agent{ClientID: "c", Instance: "first", Node: "n2", Session: s.first}}
	s.other = &Backend{Key: "k", Agent: &Agent{ClientID: "c", Instance: "other", Session: new(services)}}
	for _, b := range []*Backend{s.down, s.other} {
		ep, err := s.table.Attach(s.face, b)
		if err != nil {
			t.Fatal(err)
		}
		s.ep = ep
	}
	return s
}

// TestTunnelTakesItsTurnAgainAfterABetterWay has a tunnel's origin be down, and
// then a better way to the same tunnel come and go.
func TestTunnelTakesItsTurnAgainAfterABetterWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharedSite(t)
		s.table.TakeOut(s.ep, s.down)
		near := &Backend{Key: "k", Agent: &Agent{ClientID: "c", Instance: "first", Session: new(services)}}
		if _, err := s.table.Attach(s.face, near); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.table.Detach(s.face, near)
		s.first.down.Store(false)
		time.Sleep(time.Minute)
		if s.down.out.Load() {
			t.Error("the tunnel is out of turn, though its origin has been up for a minute")
		}
	})
}

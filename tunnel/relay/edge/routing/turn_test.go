package routing

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/origin/origintest"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// sharedSite is a table with two agents behind one name, of which the first
// has no origin at first.
type sharedSite struct {
	table       *Table
	face        Face
	ep          *Endpoint
	first       *origintest.Session
	down, other *Backend
}

func newSharedSite(t *testing.T) *sharedSite {
	t.Helper()
	s := &sharedSite{
		face:  Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotTLS, Type: wire.TypeTLS, Mode: wire.ModeBalanced, Domain: "shop.test"},
		first: new(origintest.Session),
	}
	var aside sync.WaitGroup
	life, end := context.WithCancel(context.Background())
	t.Cleanup(func() { // its probes end with the bubble
		end()
		aside.Wait()
	})
	asks := func(context.Context) (origin.Visit, bool) { return origin.Visit{}, true }
	s.table = New(Config{Life: life, Go: aside.Go, Asks: asks, Log: slog.New(slog.DiscardHandler)})
	s.first.Down.Store(true)
	s.down = &Backend{Key: "k", Agent: &Agent{ClientID: "c", Instance: "first", Node: "n2", Session: s.first}}
	s.other = &Backend{Key: "k", Agent: &Agent{ClientID: "c", Instance: "other", Session: new(origintest.Session)}}
	for _, b := range []*Backend{s.down, s.other} {
		ep, err := s.table.Attach(s.face, b)
		if err != nil {
			t.Fatal(err)
		}
		s.ep = ep
	}
	return s
}

// TestTunnelTakesItsTurnAgainAfterABetterWay has a tunnel's origin go down, and then a better
// way to the same tunnel appear and disappear.
func TestTunnelTakesItsTurnAgainAfterABetterWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharedSite(t)
		s.table.TakeOut(s.ep, s.down)
		near := &Backend{Key: "k", Agent: &Agent{ClientID: "c", Instance: "first", Session: new(origintest.Session)}}
		if _, err := s.table.Attach(s.face, near); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.table.Detach(s.face, near)
		s.first.Down.Store(false)
		time.Sleep(time.Minute)
		if s.down.out.Load() {
			t.Error("the tunnel is out of turn, though its origin has been up for a minute")
		}
	})
}

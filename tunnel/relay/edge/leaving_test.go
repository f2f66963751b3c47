package edge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// leftSite is an edge with one endpoint, whose tunnel can be taken away.
type leftSite struct {
	edge    *Edge
	ep      *routing.Endpoint
	face    routing.Face
	backend *routing.Backend
	policy  atomic.Pointer[policy.Policy]
}

func newLeftSite(t *testing.T) *leftSite {
	t.Helper()
	s := &leftSite{
		face:    routing.Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotPlain, Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: "shop.test"},
		backend: &routing.Backend{Agent: &routing.Agent{Account: new(shape.Account)}},
	}
	s.edge = New(Config{Policy: func(string) *policy.Policy { return s.policy.Load() }})
	ep, err := s.edge.Attach(s.face, s.backend)
	if err != nil {
		t.Fatal(err)
	}
	s.ep = ep
	return s
}

func (s *leftSite) giveBack() { s.edge.Detach(s.face, s.backend) }

// request is a visitor's, of whom no byte moves.
func (s *leftSite) request(t *testing.T, from string) (context.Context, *presence.Visit) {
	t.Helper()
	ctx, v := s.ep.Enter(t.Context(), exchange.NewWriter(httptest.NewRecorder(), &s.ep.Meter, httptest.NewRequest(http.MethodGet, "/", nil)))
	t.Cleanup(func() { s.ep.Leave(v) })
	v.LetIn(policy.Guest{Addr: netip.MustParseAddr(from)})
	return ctx, v
}

// left is how many endpoints that are served no more the edge still knows.
func (s *leftSite) left() int { return len(s.edge.table.All()) - len(s.edge.Endpoints()) }

// TestVisitsOnAnEndpointThatWasGivenBackAreStillWatched gives an endpoint back during visits.
// They go on, and end for the same reasons as other visits.
func TestVisitsOnAnEndpointThatWasGivenBackAreStillWatched(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*leftSite)
		other  bool // a visitor from another network stays
	}{
		{"the policy changes", func(s *leftSite) {
			s.policy.Store(policy.New(policy.Document{Deny: []string{"192.0.2.0/24"}}, nil))
			s.edge.Recheck(s.face.Target)
		}, true},
		{"the client's traffic is used up", func(s *leftSite) { s.edge.Stop(s.backend.Agent.Account, true) }, false},
		{"no byte moves", func(s *leftSite) {
			s.edge.endStill(monotime.Now(), time.Hour)
			s.edge.endStill(monotime.Now()+time.Hour, time.Hour)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newLeftSite(t)
			ctx, _ := s.request(t, "192.0.2.1")
			other, _ := s.request(t, "198.51.100.1")
			s.giveBack()
			if ctx.Err() != nil || other.Err() != nil {
				t.Fatal("a visit ended because its endpoint was given back")
			}
			c.change(s)
			if ctx.Err() == nil {
				t.Error("the visit goes on")
			}
			if stays := other.Err() == nil; stays != c.other {
				t.Errorf("the visit from another network goes on: %v, want %v", stays, c.other)
			}
		})
	}
}

// TestVisitorsAreCountedToTheirEnd gives an endpoint back during a visit.
func TestVisitorsAreCountedToTheirEnd(t *testing.T) {
	s := newLeftSite(t)
	_, v := s.ep.Enter(t.Context(), nil)
	s.ep.Begin()
	end := s.ep.End
	s.giveBack()
	if n := s.edge.Visitors()[wire.TypeHTTP]; n != 1 || s.left() != 1 {
		t.Errorf("%d visitors are counted of an endpoint that was given back, want 1", n)
	}
	s.ep.Leave(v)
	end()
	if n := s.edge.Visitors()[wire.TypeHTTP]; n != 0 {
		t.Errorf("%d visitors are counted when all have gone", n)
	}
}

// TestBandwidthIsHeldOnAnEndpointThatWasGivenBack changes both bandwidths that may limit such
// an endpoint.
func TestBandwidthIsHeldOnAnEndpointThatWasGivenBack(t *testing.T) {
	s := newLeftSite(t)
	s.request(t, "192.0.2.1")
	s.giveBack()
	s.policy.Store(policy.New(policy.Document{Bandwidth: 1000}, nil))
	s.edge.Recheck(s.face.Target)
	if !s.ep.Meter.Bounded() {
		t.Error("the policy's bandwidth does not bound it")
	}
	s.policy.Store(nil)
	s.edge.Recheck(s.face.Target)
	if s.ep.Meter.Bounded() {
		t.Error("a bandwidth that was taken away still bounds it")
	}
	s.backend.Agent.Account.In.SetRate(1000)
	s.edge.Bound(s.backend.Agent.Account)
	if !s.ep.Meter.Bounded() {
		t.Error("the client's bandwidth does not bound it")
	}
}

func TestEndpointThatWasGivenBackIsForgottenWithItsLastVisit(t *testing.T) {
	s := newLeftSite(t)
	_, first := s.request(t, "192.0.2.1")
	_, last := s.request(t, "192.0.2.2")
	s.giveBack()
	if n := len(s.edge.Endpoints()); n != 0 {
		t.Errorf("%d endpoints are served, want none", n)
	}
	s.ep.Leave(first)
	if s.left() != 1 {
		t.Fatal("it is forgotten while a visit is under way")
	}
	s.ep.Leave(last)
	if s.left() != 0 {
		t.Error("it is known after its last visit")
	}
	// One that was found before it was given back may be entered after that.
	ctx, late := s.request(t, "192.0.2.3")
	s.edge.Stop(s.backend.Agent.Account, true)
	if ctx.Err() == nil {
		t.Error("a visit that came late goes on")
	}
	s.ep.Leave(late)
	if s.left() != 0 {
		t.Error("it is known after a visit that came late")
	}
}

func TestEndpointWithoutVisitsIsForgottenAtOnce(t *testing.T) {
	s := newLeftSite(t)
	s.giveBack()
	if s.left() != 0 {
		t.Error("it is known still")
	}
}

// TestBytesOfAnEndpointThatWasGivenBackAreCounted moves some bytes before the endpoint is
// given back, and some after.
func TestBytesOfAnEndpointThatWasGivenBackAreCounted(t *testing.T) {
	s := newLeftSite(t)
	counted := func(when string, want int64) {
		t.Helper()
		if f := s.edge.Figures(); f.BytesIn != want || f.BytesOut != want {
			t.Errorf("%s: %d bytes in and %d out, want %d", when, f.BytesIn, f.BytesOut, want)
		}
	}
	pass := func() { s.ep.Meter.CountIn(100); s.ep.Meter.CountOut(100) }
	_, v := s.request(t, "192.0.2.1")
	pass()
	counted("served", 100)
	s.giveBack()
	counted("given back", 100)
	pass()
	counted("given back, with a visit", 200)
	s.ep.Leave(v)
	counted("forgotten", 200)
	_, late := s.request(t, "192.0.2.1")
	pass()
	counted("with a late visit", 300)
	s.ep.Leave(late)
	counted("forgotten again", 300)
}

// TestVisitsAreFoundWhileTheirEndpointIsGivenBack has visits begin and end while that happens.
// A change of policy finds each of them, and none keeps the endpoint from being forgotten.
func TestVisitsAreFoundWhileTheirEndpointIsGivenBack(t *testing.T) {
	for range 200 {
		s := newLeftSite(t)
		s.policy.Store(policy.New(policy.Document{Deny: []string{"192.0.2.0/24"}}, nil))
		var visitors sync.WaitGroup
		for range 4 {
			visitors.Go(func() {
				for range 3 {
					ctx, v := s.ep.Enter(context.Background(), nil)
					v.LetIn(policy.Guest{Addr: netip.MustParseAddr("192.0.2.1")})
					s.edge.Recheck(s.face.Target)
					if ctx.Err() == nil {
						t.Error("a visit was not found")
					}
					s.ep.Leave(v)
				}
			})
		}
		visitors.Go(s.giveBack)
		visitors.Wait()
		if s.left() != 0 {
			t.Fatal("an endpoint without visits is known still")
		}
	}
}

package edge

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"

	"adit/tunnel/relay/edge/origin/origintest"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// balancedSite is an edge with two agents behind one name, of which the first
// has no origin at first.
type balancedSite struct {
	edge        *Edge
	face        routing.Face
	ep          *routing.Endpoint
	first       *origintest.Session
	down, other *routing.Backend
}

func newBalancedSite(t *testing.T) *balancedSite {
	t.Helper()
	s := &balancedSite{
		edge:  New(Config{}),
		face:  routing.Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotTLS, Type: wire.TypeTLS, Mode: wire.ModeBalanced, Domain: "shop.test"},
		first: new(origintest.Session),
	}
	s.first.Down.Store(true)
	s.down = &routing.Backend{Key: "k", Agent: &routing.Agent{ClientID: "c", Instance: "first", Node: "n2", Session: s.first}}
	s.other = &routing.Backend{Key: "k", Agent: &routing.Agent{ClientID: "c", Instance: "other", Session: new(origintest.Session)}}
	for _, b := range []*routing.Backend{s.down, s.other} {
		ep, err := s.edge.Attach(s.face, b)
		if err != nil {
			t.Fatal(err)
		}
		s.ep = ep
	}
	t.Cleanup(func() { // its probes end with the bubble
		s.edge.kill()
		s.edge.ports.Wait()
	})
	return s
}

// at is the connection of a visitor at an address.
type at struct {
	net.Conn
	from netip.AddrPort
}

func (c at) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }
func (c at) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 254), Port: 443} }

// TestConnectionIsCountedWhereItIs moves a tcp visitor from an agent whose origin is down to
// another agent.
func TestConnectionIsCountedWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBalancedSite(t)
		near, far := net.Pipe()
		visitor := s.edge.admission.Admit(at{far, netip.MustParseAddrPort("192.0.2.1:1")})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.edge.serveRaw(visitor, s.ep, "shop.test")
		}()
		synctest.Wait()
		if !s.down.OutOfTurn() {
			t.Error("the agent without an origin was not asked first")
		}
		if down, other := s.down.Busy(), s.other.Busy(); down != 0 || other != 1 {
			t.Errorf("counted %d where the origin is down, and %d where the visitor is; want 0 and 1", down, other)
		}
		near.Close()
		<-ended
		if n := s.other.Busy(); n != 0 {
			t.Errorf("counted %d after the visit", n)
		}
	})
}

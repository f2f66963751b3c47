package edge

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// origins is an agent's session whose streams reach an origin, or are told that it
// is down.
type origins struct {
	link.Session
	down atomic.Bool
}

func (s *origins) Done() <-chan struct{} { return nil }
func (s *origins) Err() error            { return nil }

func (s *origins) OpenStream(context.Context) (link.Stream, error) {
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
	return pipeStream{near}, nil
}

type pipeStream struct{ net.Conn }

func (s pipeStream) CloseWrite() error { return s.Close() }
func (s pipeStream) Reset()            { s.Close() }
func (s pipeStream) Quiet() bool       { return true }

// balancedSite is an edge with two agents behind one name, of which the first
// has no origin at first.
type balancedSite struct {
	edge        *Edge
	face        routing.Face
	ep          *routing.Endpoint
	first       *origins
	down, other *routing.Backend
}

func newBalancedSite(t *testing.T) *balancedSite {
	t.Helper()
	s := &balancedSite{
		edge:  New(Config{}),
		face:  routing.Face{Target: store.TargetDomain("shop.test"), Slot: store.SlotTLS, Type: wire.TypeTLS, Mode: wire.ModeBalanced, Domain: "shop.test"},
		first: new(origins),
	}
	s.first.down.Store(true)
	s.down = &routing.Backend{Key: "k", Agent: &routing.Agent{ClientID: "c", Instance: "first", Node: "n2", Session: s.first}}
	s.other = &routing.Backend{Key: "k", Agent: &routing.Agent{ClientID: "c", Instance: "other", Session: new(origins)}}
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

// TestConnectionIsCountedWhereItIs has a tcp visitor be turned from an agent whose
// origin is down to another.
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

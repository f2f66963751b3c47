package udp

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/internal/udpbatch"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/shape"
	"adit/tunnel/wire"
)

// ErrNoVisit is returned by Begin if the endpoint accepts no more visits.
var ErrNoVisit = errors.New("the endpoint takes no visit now")

// Private takes the place of a port for a private udp endpoint. Its visitors are agents, whose
// packets come as datagrams of their own sessions.
type Private struct {
	all *Ports
	ep  *routing.Endpoint

	mu     sync.Mutex
	visits map[*Visit]struct{}
	closed bool
}

// OpenPrivate returns a Private for an endpoint.
func (ps *Ports) OpenPrivate(ep *routing.Endpoint) *Private {
	return &Private{all: ps, ep: ep, visits: make(map[*Visit]struct{})}
}

// StopAccepting implements routing.Port. Visits continue, and new ones may begin, until Close.
func (p *Private) StopAccepting() {}

// EndFlows implements routing.Port.
func (p *Private) EndFlows(pick func(*routing.Backend, netip.Addr) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v := range p.visits {
		if pick(v.backend, v.from) {
			v.end()
		}
	}
}

// Close ends all visits and accepts no more.
func (p *Private) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for v := range p.visits {
		v.end()
	}
}

// Visit is one flow between a guest's session and the tunnel's session.
type Visit struct {
	of      *Private
	backend *routing.Backend
	from    netip.Addr
	guest   side
	origin  side
	last    atomic.Int64 // of the last packet, by monotime.Now
	begun   atomic.Bool  // both sides have their flow numbers
	over    chan struct{}
	end     func() // closes over
}

// side is one end of a visit. What arrives from it leaves at the other side.
type side struct {
	visit    *Visit
	agent    *routing.Agent
	endpoint uint32
	number   uint32 // of the flow, in the agent's session
	passed   atomic.Int64

	// Used by Take, which is called by one goroutine at a time.
	other  *side
	packet uint16
	buf    []byte
}

// Begin begins a visit to one of the endpoint's tunnels by a guest whose packets come by the
// session of at. End must follow.
func (p *Private) Begin(at *routing.Agent, g visitor.Guest, b *routing.Backend) (*Visit, error) {
	v := &Visit{of: p, backend: b, from: g.Addr.Addr(), over: make(chan struct{})}
	v.end = sync.OnceFunc(func() { close(v.over) })
	v.last.Store(int64(monotime.Now()))
	v.guest = side{visit: v, agent: at, endpoint: wire.EndpointVisits, other: &v.origin}
	v.origin = side{visit: v, agent: b.Agent, endpoint: b.Number, other: &v.guest}
	if !p.add(v) {
		return nil, ErrNoVisit
	}
	b.Take()
	v.origin.agent.Flows.Add(&v.origin, &v.origin.number)
	v.guest.agent.Flows.Add(&v.guest, &v.guest.number)
	_ = b.Agent.Session.SendDatagram(wire.From{Visitor: g.Addr, Client: g.Client}.Datagram(b.Number, v.origin.number)) // may be lost
	v.begun.Store(true)
	return v, nil
}

// add registers a visit, so that EndFlows and Close find it, if it may begin.
func (p *Private) add(v *Visit) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// If the tunnel was removed before the visit was registered, the visit has not been told.
	if p.closed || len(p.visits) >= p.all.cfg.Flows || !p.ep.Leads(v.backend) {
		return false
	}
	p.visits[v] = struct{}{}
	return true
}

// Number returns the number of the flow in the guest's session.
func (v *Visit) Number() uint32 { return v.guest.number }

// Passed returns the payload bytes that went in, to the tunnel, and out.
func (v *Visit) Passed() (in, out int64) { return v.guest.passed.Load(), v.origin.passed.Load() }

// Wait returns when the visit is over: because ctx, one of the sessions, the tunnel or its
// agent's side of the flow has ended, or because nothing has passed for the idle time. active
// is called now and then while packets pass.
func (v *Visit) Wait(ctx context.Context, active func()) {
	idle := v.of.all.cfg.Idle
	tick := time.NewTicker(max(idle/4, 10*time.Millisecond))
	defer tick.Stop()
	for seen := v.last.Load(); ; {
		select {
		case <-ctx.Done():
			return
		case <-v.over:
			return
		case <-v.guest.agent.Session.Done():
			return
		case <-v.origin.agent.Session.Done():
			return
		case <-tick.C:
		}
		last := v.last.Load()
		if time.Duration(last) < monotime.Now()-idle {
			return
		}
		if last != seen {
			active()
		}
		seen = last
	}
}

// End ends the visit and tells the tunnel's agent.
func (v *Visit) End() {
	v.end()
	v.guest.agent.Flows.Remove(v.guest.number)
	v.origin.agent.Flows.Remove(v.origin.number)
	v.backend.Leave()
	v.of.mu.Lock()
	delete(v.of.visits, v)
	v.of.mu.Unlock()
	d := wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: v.origin.endpoint, Number: v.origin.number})
	_ = v.origin.agent.Session.SendDatagram(d) // UDP packets may be lost
}

// Endpoint implements flows.Flow.
func (s *side) Endpoint() uint32 { return s.endpoint }

// Over implements flows.Flow.
func (s *side) Over() { s.visit.end() }

// Take implements flows.Flow. Packets that have come from this side leave at the other, if
// there is bandwidth for them.
func (s *side) Take(payloads [][]byte) {
	if !s.visit.begun.Load() {
		return
	}
	s.visit.last.Store(int64(monotime.Now()))
	udpbatch.Passed(len(payloads))
	to := s.other.agent.Session
	if len(payloads) > 1 {
		link.GatherDatagrams(to)
		defer link.SendGathered(to)
	}
	room, count := s.meter()
	for _, payload := range payloads {
		if !room.Try(len(payload)) {
			s.visit.of.all.overBandwidth.Add(1)
			continue
		}
		s.passed.Add(int64(len(payload)))
		count(len(payload))
		s.packet++
		d := wire.Flow{Endpoint: s.other.endpoint, Number: s.other.number, Packet: s.packet, Payload: payload}
		s.buf, _ = wire.SplitFlow(s.buf, d, to.MaxDatagram(), to.SendDatagram) // UDP packets may be lost
	}
}

// meter returns what limits the packets from this side, and what counts them.
func (s *side) meter() (shape.Buckets, func(int)) {
	m := &s.visit.of.ep.Meter
	if s == &s.visit.guest {
		return m.In(), m.CountIn
	}
	return m.Out(), m.CountOut
}

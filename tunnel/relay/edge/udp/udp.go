// Package udp serves the public ports of udp endpoints. Each visitor's address has a flow,
// whose packets travel as datagrams of the session that the tunnel belongs to. The package
// limits the number of flows, and how much is sent to addresses that may be forged. The edge
// decides who is let in.
package udp

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lend"
	"adit/internal/monotime"
	"adit/internal/netblock"
	"adit/internal/shares"
	"adit/internal/udpbatch"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/wire"
)

// readBuffer is large enough for a burst of packets that arrives while the edge is not
// scheduled.
const readBuffer = 4 << 20

// batch is how many packets a busy port reads at a time.
const batch = 16

// Config configures udp ports.
type Config struct {
	Flows           int           // of one endpoint
	FlowsPerAddress int           // of one endpoint
	OfAll           int           // of all endpoints, which only clients with less than their share may exceed
	Idle            time.Duration // after which an idle flow is forgotten
	Amplification   int           // bytes sent back per byte received from a visitor whose address is unproved, counted on the wire
	// Enter decides whether a visitor is admitted, like policy.Policy.Enter. It returns the
	// rule that refuses the visitor, or would in shadow mode, whether the visitor is admitted,
	// and a function to call at the end.
	Enter func(ep *routing.Endpoint, visitor netip.Addr) (refused string, in bool, release func())
	// Keeps reports whether a visitor who was admitted may stay.
	Keeps  func(ep *routing.Endpoint, visitor netip.Addr) bool
	Record func(*routing.Endpoint, *routing.Backend, wire.Access)
}

// Ports are the udp ports of an edge.
type Ports struct {
	cfg                     Config
	shares                  *shares.Shares
	overBandwidth, unproved atomic.Uint64
}

// New returns a Ports without any open port.
func New(cfg Config) *Ports {
	if cfg.OfAll == 0 {
		cfg.OfAll = math.MaxInt
	}
	return &Ports{cfg: cfg, shares: new(shares.Shares)}
}

// Dropped returns how many packets were dropped: for lack of bandwidth in either direction,
// and on the way to visitors whose address may be forged, beyond the allowed amplification.
func (ps *Ports) Dropped() (overBandwidth, unproved uint64) {
	return ps.overBandwidth.Load(), ps.unproved.Load()
}

// Open opens the port of an endpoint. The caller must serve it.
func (ps *Ports) Open(addr string, ep *routing.Endpoint) (*Port, error) {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("open port: %w", err)
	}
	return newPort(ps, ep, conn.(*net.UDPConn)), nil
}

// Port is the public port of a udp endpoint. It gives each visitor a flow and carries packets
// between the visitor and the session's datagrams.
type Port struct {
	all  *Ports
	ep   *routing.Endpoint
	conn *udpbatch.Conn

	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	flows   map[netip.AddrPort]*flow
	owners  map[netip.Prefix]int
	told    map[netip.Prefix]time.Time // when a refusal was last recorded, by visitor
	buf     []byte
	gathers link.Session // the session whose datagrams are being gathered; used only by the reader
}

// flow is the packets of one visitor's address and port on one endpoint.
type flow struct {
	port    *Port
	backend *routing.Backend
	number  uint32
	visitor netip.AddrPort
	at      udpbatch.Addr // the visitor's address, and the local address that it uses
	start   time.Time
	refused string // the rule of a policy in shadow mode
	release func()

	packet   atomic.Uint32
	last     atomic.Int64 // of the last packet, by monotime.Now
	in, out  atomic.Int64 // payload bytes
	withheld atomic.Bool  // an answer was dropped, and the agent was told
	answered atomic.Bool  // something was sent to the visitor
	proved   atomic.Bool  // the visitor sent more after that, so its address is not forged
	allowed  atomic.Int64 // bytes on the wire that may be sent back until then
}

func (f *flow) Endpoint() uint32       { return f.backend.Number }
func (f *flow) Take(payloads [][]byte) { f.answer(payloads) }
func (f *flow) Over()                  { f.port.endOne(f) }

func newPort(all *Ports, ep *routing.Endpoint, conn *net.UDPConn) *Port {
	return &Port{
		all: all, ep: ep, closed: make(chan struct{}),
		conn:  udpbatch.New(conn, udpbatch.Options{NoGRO: true, Fragment: true, NeverWait: true, SocketBuffer: readBuffer}),
		flows: make(map[netip.AddrPort]*flow), owners: make(map[netip.Prefix]int), told: make(map[netip.Prefix]time.Time), buf: make([]byte, 64<<10),
	}
}

// StopAccepting implements routing.Port. Flows continue, and new ones may begin, until Close.
func (p *Port) StopAccepting() {}

// EndFlows implements routing.Port.
func (p *Port) EndFlows(pick func(*routing.Backend, netip.Addr) bool) {
	p.end(func(f *flow) bool { return pick(f.backend, f.visitor.Addr()) })
}

// Close closes the port and ends its flows.
func (p *Port) Close() {
	p.once.Do(func() {
		close(p.closed)
		p.conn.Close()
	})
}

// Serve receives visitors' packets until the port is closed.
func (p *Port) Serve() {
	var sweeping sync.WaitGroup
	stop := make(chan struct{})
	sweeping.Go(func() { p.sweep(stop) })
	defer func() {
		close(stop)
		sweeping.Wait()
		p.end(func(*flow) bool { return true })
	}()
	packets := make([]udpbatch.Buffer, 1, min(batch, p.conn.Batch()))
	packets[0].B = make([]byte, 64<<10)
	for quiet := 0; ; {
		n, err := p.conn.ReadBatch(packets)
		if err != nil { // on some systems, an ICMP error about an earlier packet
			if !visitor.RideOut(context.Background(), p.closed) {
				return
			}
			continue
		}
		for i := range packets[:n] {
			p.receive(packets[i].Addr, packets[i].B[:packets[i].N], n > 1)
		}
		p.gather(nil)
		udpbatch.Passed(n)
		// A busy port uses more buffers, and returns them after a while.
		switch {
		case n == len(packets) && n < cap(packets):
			packets, quiet = packets[:n+1], 0
			packets[n].B = lend.TakeLarge()
		case n == len(packets):
			quiet = 0
		case len(packets) > 1:
			if quiet++; quiet > 256 {
				last := &packets[len(packets)-1]
				lend.GiveLarge(last.B)
				last.B = nil
				packets, quiet = packets[:len(packets)-1], 0
			}
		}
	}
}

// gather begins to gather datagrams for a session, and sends those gathered for another.
func (p *Port) gather(s link.Session) {
	if s == p.gathers {
		return
	}
	if p.gathers != nil {
		link.SendGathered(p.gathers)
	}
	if p.gathers = s; s != nil {
		link.GatherDatagrams(s)
	}
}

// receive sends one packet from a visitor to the agent. If more, further packets of the same
// batch follow, and their datagrams are gathered.
func (p *Port) receive(at udpbatch.Addr, payload []byte, more bool) {
	f := p.flowOf(at)
	if f == nil {
		return
	}
	f.last.Store(int64(monotime.Now()))
	if !p.ep.Meter.In().Try(len(payload)) {
		p.all.overBandwidth.Add(1)
		return
	}
	p.ep.Meter.CountIn(len(payload))
	f.asked(len(payload))
	session := f.backend.Agent.Session
	if more {
		p.gather(session)
	}
	out := wire.Flow{Endpoint: f.backend.Number, Number: f.number, Packet: uint16(f.packet.Add(1)), Payload: payload}
	p.buf, _ = wire.SplitFlow(p.buf, out, session.MaxDatagram(), session.SendDatagram) // UDP packets may be lost
}

// flowOf finds or begins a visitor's flow. It returns nil if the flow may not begin.
func (p *Port) flowOf(at udpbatch.Addr) *flow {
	from := visitor.Clean(at.AddrPort)
	p.mu.Lock()
	f := p.flows[from]
	full := len(p.flows) >= p.all.cfg.Flows || p.owners[netblock.Of(from.Addr())] >= p.all.cfg.FlowsPerAddress
	p.mu.Unlock()
	if f != nil {
		select {
		case <-f.backend.Agent.Session.Done():
		default:
			return f
		}
		// Another session may be able to serve the visitor.
		p.endOne(f)
		full = false
	}
	list := p.ep.Pick()
	if full || len(list) == 0 || !p.all.shares.Take(list[0].Agent.ClientID, p.all.cfg.OfAll) {
		return nil
	}
	refused, let, release := p.all.cfg.Enter(p.ep, from.Addr())
	if !let {
		p.all.shares.Give(list[0].Agent.ClientID)
		if now := time.Now(); p.tells(from.Addr(), now) {
			p.all.cfg.Record(p.ep, nil, wire.Access{
				Time: now.UTC(), Endpoint: p.ep.ID(), Visitor: from.Addr().String(), Refused: refused,
			})
		}
		return nil
	}
	f = &flow{port: p, backend: list[0], visitor: from, at: at, start: time.Now(), refused: refused, release: release}
	f.backend.Agent.Flows.Add(f, &f.number)
	f.backend.Take()
	p.ep.Begin()
	p.mu.Lock()
	p.flows[from] = f
	p.owners[netblock.Of(from.Addr())]++
	p.mu.Unlock()
	// The tunnel may have been removed, or the policy changed, before the flow could be found.
	if !p.ep.Leads(f.backend) || !p.all.cfg.Keeps(p.ep, from.Addr()) {
		p.endOne(f)
		return nil
	}
	_ = f.backend.Agent.Session.SendDatagram(wire.From{Visitor: from}.Datagram(f.backend.Number, f.number)) // may be lost
	return f
}

// tells reports whether to record a refusal: once per visitor in the time that a flow would
// last, and no more often than there may be flows. Packets cost a stranger nothing, and each
// record would push another event out of the log.
func (p *Port) tells(a netip.Addr, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.told[netblock.Of(a)]
	if known && now.Sub(last) < p.all.cfg.Idle || !known && len(p.told) >= p.all.cfg.Flows {
		return false
	}
	p.told[netblock.Of(a)] = now
	return true
}

// answer sends packets from the origin to the visitor. It is called by one goroutine at a
// time.
func (f *flow) answer(payloads [][]byte) {
	let := payloads[:0]
	for _, payload := range payloads {
		if f.lets(payload) {
			let = append(let, payload)
		}
	}
	udpbatch.Passed(len(let))
	if len(let) > 0 {
		_ = f.port.conn.WriteBatch(let, f.at) // UDP packets may be lost
	}
}

// asked counts a packet from the visitor.
func (f *flow) asked(payload int) {
	f.in.Add(int64(payload))
	if f.answered.Load() {
		f.proved.Store(true)
	}
	f.allowed.Add(f.onWire(payload) * int64(f.port.all.cfg.Amplification))
}

// onWire returns the size of a packet of the flow with its IP and UDP headers (RFC 791, RFC
// 8200, RFC 768). The victim of a flood of forged packets receives those as well, and they are
// the larger part of a short query.
func (f *flow) onWire(payload int) int64 {
	if f.visitor.Addr().Is4() {
		return int64(20 + 8 + payload)
	}
	return int64(40 + 8 + payload)
}

// lets reports whether a packet may be sent to the visitor, and counts it if so. It may not if
// the visitor's address may be forged and has had its amplification, or if there is no
// bandwidth.
func (f *flow) lets(payload []byte) bool {
	size := f.onWire(len(payload))
	if !f.proved.Load() && size > f.allowed.Load() {
		f.port.all.unproved.Add(1)
		f.tellWithheld()
		return false
	}
	f.last.Store(int64(monotime.Now()))
	if !f.port.ep.Meter.Out().Try(len(payload)) {
		f.port.all.overBandwidth.Add(1)
		return false
	}
	f.allowed.Add(-size)
	f.out.Add(int64(len(payload)))
	f.port.ep.Meter.CountOut(len(payload))
	f.answered.Store(true)
	return true
}

// tellWithheld tells the agent, once, that the visitor does not get all answers. Otherwise the
// service's owner would look for the cause in vain.
func (f *flow) tellWithheld() {
	if f.withheld.Swap(true) {
		return
	}
	d := wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowWithheld, Endpoint: f.backend.Number, Number: f.number})
	_ = f.backend.Agent.Session.SendDatagram(d) // UDP packets may be lost
}

// sweep removes idle flows and those whose session has ended.
func (p *Port) sweep(stop <-chan struct{}) {
	tick := time.NewTicker(max(p.all.cfg.Idle/4, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		before := int64(monotime.Now() - p.all.cfg.Idle)
		p.end(func(f *flow) bool {
			return f.last.Load() < before || f.backend.Agent.Session.Err() != nil
		})
		p.mu.Lock()
		maps.DeleteFunc(p.told, func(_ netip.Prefix, at time.Time) bool { return time.Since(at) > p.all.cfg.Idle })
		p.mu.Unlock()
	}
}

// end ends the flows for which over returns true.
func (p *Port) end(over func(*flow) bool) {
	var ended []*flow
	p.mu.Lock()
	for _, f := range p.flows {
		if over(f) {
			p.forget(f)
			ended = append(ended, f)
		}
	}
	p.mu.Unlock()
	for _, f := range ended {
		p.settle(f)
	}
}

// endOne ends one flow without looking at the others, because the caller may be the goroutine
// that reads all sessions.
func (p *Port) endOne(f *flow) {
	p.mu.Lock()
	open := p.flows[f.visitor] == f
	if open {
		p.forget(f)
	}
	p.mu.Unlock()
	if open {
		p.settle(f)
	}
}

// forget removes a flow from the tables. The caller holds p.mu.
func (p *Port) forget(f *flow) {
	delete(p.flows, f.visitor)
	from := netblock.Of(f.visitor.Addr())
	if p.owners[from]--; p.owners[from] <= 0 {
		delete(p.owners, from)
	}
}

// settle releases what a removed flow holds, and records the flow.
func (p *Port) settle(f *flow) {
	a := f.backend.Agent
	a.Flows.Remove(f.number)
	f.backend.Leave()
	f.release()
	p.all.shares.Give(a.ClientID)
	p.ep.End()
	_ = a.Session.SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: f.backend.Number, Number: f.number}))
	p.all.cfg.Record(p.ep, f.backend, wire.Access{
		Time: f.start.UTC(), Endpoint: p.ep.ID(), Visitor: f.visitor.Addr().String(), Refused: f.refused,
		BytesIn: f.in.Load(), BytesOut: f.out.Load(), Duration: time.Since(f.start),
	})
}

// Package simnet is a network in memory: packet connections joined by links that delay, limit,
// lose, reorder, duplicate and refuse packets, and that several flows may share. It is
// deterministic for a given seed, starts no goroutines, and is meant for testing/synctest bubbles,
// in which its time is virtual.
package simnet

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Network joins connections by links. Packets between addresses without a route arrive at once, as
// on loopback.
type Network struct {
	mu     sync.Mutex
	rng    *rand.Rand
	conns  map[netip.AddrPort]*Conn
	routes map[[2]netip.Addr][]*Link
	events eventHeap
	timer  *time.Timer
	seq    uint64
	start  time.Time
	late   lateness
}

// lateness is by how much events came after their time.
type lateness struct {
	total, most time.Duration
	events      int64
}

// New returns an empty network whose random choices are drawn from seed.
func New(seed uint64) *Network {
	return &Network{
		rng:    rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)),
		conns:  make(map[netip.AddrPort]*Conn),
		routes: make(map[[2]netip.Addr][]*Link),
		start:  time.Now(),
	}
}

// Listen opens a connection at addr, such as "10.0.0.1:4433".
func (n *Network) Listen(addr string) (*Conn, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on simulated %q: %w", addr, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns[at] != nil {
		return nil, fmt.Errorf("listen on simulated %s: address in use", at)
	}
	c := &Conn{network: n, addr: at}
	c.ready.L = &c.mu
	n.conns[at] = c
	return c, nil
}

// Route sends packets from one host to another through links, in order. It
// replaces an earlier route; without links the packets arrive at once.
func (n *Network) Route(from, to netip.Addr, links ...*Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.routes[[2]netip.Addr{from, to}] = links
}

// Join routes both directions between two hosts: packets from a to b go through there, and those
// from b to a through back.
func (n *Network) Join(a, b string, there, back *Link) {
	from, to := netip.MustParseAddr(a), netip.MustParseAddr(b)
	n.Route(from, to, there)
	n.Route(to, from, back)
}

// now is the time since the network began.
func (n *Network) now() time.Duration { return time.Since(n.start) }

// event is a packet that arrives at the next link of its route, or at its end.
type event struct {
	at   time.Duration
	seq  uint64
	data []byte
	from netip.AddrPort
	to   netip.AddrPort
	rest []*Link
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}

// send lets a packet enter the network. It takes data over.
func (n *Network) send(from, to netip.AddrPort, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := event{data: data, from: from, to: to, rest: n.routes[[2]netip.Addr{from.Addr(), to.Addr()}]}
	n.forward(n.now(), e)
	n.arm()
}

// forward moves a packet through its next link, or delivers it.
func (n *Network) forward(now time.Duration, e event) {
	if len(e.rest) == 0 {
		if c := n.conns[e.to]; c != nil {
			c.deliver(e.data, e.from)
		}
		return
	}
	link := e.rest[0]
	e.rest = e.rest[1:]
	copies := 1
	if p := link.path.Duplicate; p > 0 && n.rng.Float64() < p {
		copies = 2
	}
	for range copies {
		at, ok := link.admit(now, len(e.data), n.rng)
		if !ok {
			continue
		}
		c := e
		c.at = at
		if copies > 1 {
			c.data = append([]byte(nil), e.data...)
		}
		n.seq++
		c.seq = n.seq
		if at <= now {
			n.forward(now, c)
		} else {
			heap.Push(&n.events, c)
		}
	}
}

// arm sets the timer to the next event. The caller holds mu.
func (n *Network) arm() {
	if len(n.events) == 0 {
		return
	}
	wait := max(0, n.events[0].at-n.now())
	if n.timer == nil {
		n.timer = time.AfterFunc(wait, n.run)
	} else {
		n.timer.Reset(wait)
	}
}

// run delivers what is due.
func (n *Network) run() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for now := n.now(); len(n.events) > 0 && n.events[0].at <= now; {
		e := heap.Pop(&n.events).(event)
		n.late.total += now - e.at
		n.late.most = max(n.late.most, now-e.at)
		n.late.events++
		n.forward(now, e)
	}
	n.arm()
}

// Late returns by how much packets have left links after their time, on average and at most. In
// virtual time that is nothing; in real time it shows how well the machine kept up.
func (n *Network) Late() (mean, most time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.late.total / time.Duration(max(n.late.events, 1)), n.late.most
}

// Close closes every connection and drops the packets on their way.
func (n *Network) Close() error {
	n.mu.Lock()
	if n.timer != nil {
		n.timer.Stop()
	}
	n.events = nil
	conns := make([]*Conn, 0, len(n.conns))
	for _, c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	return nil
}

var _ net.PacketConn = (*Conn)(nil)

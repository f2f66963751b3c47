package forward

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/traffic"
)

// Tunnel leads its visitors to its local service. It is for several goroutines at once.
type Tunnel struct {
	id       string
	route    atomic.Pointer[route]
	counters traffic.Counters
	conns    conns
	// heard is where its datagram service answered last, if it has several addresses.
	heard atomic.Pointer[netip.AddrPort]
}

// NewTunnel returns a tunnel that leads as want, which is normalized, says.
func NewTunnel(id string, want definition.Tunnel) *Tunnel {
	t := &Tunnel{id: id}
	t.Lead(want)
	return t
}

// Lead leads visitors that come from now on as want says. If that does not come to be,
// another Lead is to follow, and then undo: it ends the connections of those who came
// between. Else they would go on to where want would have led: the relay has the claim
// of before, and uses their streams again.
func (t *Tunnel) Lead(want definition.Tunnel) (undo func()) {
	r := newRoute(t.id, want)
	t.route.Store(r)
	return func() {
		r.undone.Store(true)
		t.conns.cut(func(r *route) bool { return r.undone.Load() })
	}
}

// Local is where the local service is: host:port.
func (t *Tunnel) Local() string { return t.route.Load().service.String() }

// Fault is why the service of the tunnel, or of one of its paths, was not reached last;
// empty if it was, or nobody tried.
func (t *Tunnel) Fault() string { return t.route.Load().faultText() }

// Connections counts the tunnel's visitors.
func (t *Tunnel) Connections() traffic.Connections { return t.counters.Connections() }

// Bytes counts what passed.
func (t *Tunnel) Bytes() traffic.Bytes { return t.counters.Bytes() }

// Cut ends the connections of all visitors, and of those whose origins are being
// dialled.
func (t *Tunnel) Cut() { t.conns.abort() }

// CutStrays ends the connections by paths that are there no more, or lead to other
// services now.
func (t *Tunnel) CutStrays() {
	t.conns.cut(func(r *route) bool { return r.path != "" && !t.leads(r) })
}

// leads reports whether a visitor of r's path would be led to r's service now.
func (t *Tunnel) leads(r *route) bool {
	now := t.route.Load().at(r.path)
	return now != nil && now.service.String() == r.service.String()
}

// conns are the visitors' connections of one tunnel, to be cut when it stops.
type conns struct {
	mu   sync.Mutex
	open map[interface{ abort() }]*route
	cuts int // how often all of them were
}

// era is for add. An era ends when the connections are cut: a visitor that came
// before that does not stay.
func (c *conns) era() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// add keeps p, of a visitor of r that came in era, until remove, or ends it if the
// tunnel was cut, or its route was undone, while its origin was dialled.
func (c *conns) add(p interface{ abort() }, r *route, era int) {
	c.mu.Lock()
	late := c.cuts != era
	if !late {
		if c.open == nil {
			c.open = make(map[interface{ abort() }]*route)
		}
		c.open[p] = r
	}
	c.mu.Unlock()
	if late || r.undone.Load() {
		p.abort()
	}
}

func (c *conns) remove(p interface{ abort() }) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, p)
}

// abort cuts all of them.
func (c *conns) abort() {
	c.mu.Lock()
	c.cuts++
	c.mu.Unlock()
	c.cut(func(*route) bool { return true })
}

// cut cuts those of the routes that gone picks.
func (c *conns) cut(gone func(*route) bool) {
	c.mu.Lock()
	list := make([]interface{ abort() }, 0, len(c.open))
	for p, r := range c.open {
		if gone(r) {
			list = append(list, p)
		}
	}
	c.mu.Unlock()
	for _, p := range list {
		p.abort()
	}
}

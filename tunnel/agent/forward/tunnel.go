package forward

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/traffic"
)

// Tunnel leads its visitors to its local service. It is safe for concurrent use.
type Tunnel struct {
	id       string
	route    atomic.Pointer[route]
	counters traffic.Counters
	conns    conns
	// heard is where its datagram service answered last, if it has several addresses.
	heard atomic.Pointer[netip.AddrPort]
}

// NewTunnel returns a tunnel that leads where want, which must be normalised, says.
func NewTunnel(id string, want definition.Tunnel) *Tunnel {
	t := &Tunnel{id: id}
	t.Lead(want)
	return t
}

// Lead makes new visitors go where want says. If the change does not come about, the caller must
// call Lead again with the old definition and then undo, which ends the connections of visitors
// that came in between. They would otherwise keep going where want led, because the relay still has
// the old claim and reuses their streams.
func (t *Tunnel) Lead(want definition.Tunnel) (undo func()) {
	r := newRoute(t.id, want)
	t.route.Store(r)
	return func() {
		r.undone.Store(true)
		t.conns.cut(func(r *route) bool { return r.undone.Load() })
	}
}

// Local returns the local service's address, host:port.
func (t *Tunnel) Local() string { return t.route.Load().service.String() }

// Fault returns why the service of the tunnel, or of one of its paths, could not be reached most
// recently; empty if it was reached, or if nobody tried.
func (t *Tunnel) Fault() string { return t.route.Load().faultText() }

// Connections counts the tunnel's visitors.
func (t *Tunnel) Connections() traffic.Connections { return t.counters.Connections() }

// Bytes counts the tunnel's traffic.
func (t *Tunnel) Bytes() traffic.Bytes { return t.counters.Bytes() }

// Cut ends the connections of all visitors, including those whose origin is still being dialled.
func (t *Tunnel) Cut() { t.conns.abort() }

// CutStrays ends connections by paths that no longer exist or that now lead to other services.
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

// era returns the value to pass to add. An era ends when the connections are cut: a visitor that
// came before that does not stay.
func (c *conns) era() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts
}

// add keeps p, of a visitor of r that came in era, until remove. It ends p if the tunnel was cut,
// or its route was undone, while its origin was being dialled.
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

// cut cuts the connections of the routes selected by gone.
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

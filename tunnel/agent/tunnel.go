package agent

import (
	"cmp"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/spec"
	"adit/tunnel/agent/state"
	"adit/tunnel/wire"
)

// tunnel is one tunnel. The agent's mutex guards its fields, but for those that
// say otherwise.
type tunnel struct {
	id       string
	created  time.Time
	declared bool

	spec    spec.Tunnel // normalized
	rev     int         // rises with each change of what the relay is told
	stopped bool
	deleted bool
	fault   string // why the spec of the state file may not be; it is not claimed then
	failure string // why the relay refuses it; empty if it does not

	grant state.Grant // what the relay gave last; kept when the session goes
	live  *live       // the session that the endpoint is claimed on; nil if it is not
	// claimed is the rev that live knows.
	claimed    int
	number     uint32
	other      held // the claim on the second session
	endpointID string
	since      time.Time

	holders holders
	gone    chan struct{} // closed when it is deleted

	published *Tunnel // as last told to the feed

	claiming sync.Mutex            // held while the relay is asked about this tunnel
	asking   *live                 // the session that it is asked on; nil while it is not
	route    atomic.Pointer[route] // what forwarding needs; not guarded
	counters counters              // not guarded
	conns    conns                 // not guarded
	// heard is where its datagram service answered last, if it has several addresses; not guarded.
	heard atomic.Pointer[netip.AddrPort]
}

// route is what forwarding needs to know of a tunnel. It is never changed, but for
// undone.
type route struct {
	id, name string
	spec     spec.Tunnel
	secret   []string // request fields that the tunnel gives its origin
	inspect  bool
	service  origin.Service

	forks  []*route // one for each of spec's paths, in their order
	path   string   // of a fork
	prefix string   // of a fork: what its service is told was taken out of its requests; empty: nothing was

	fault  *fault
	undone *atomic.Bool // the change that it is of has not come to be; its forks have the same
}

// counters count visitors.
type counters struct {
	open, total, in, out atomic.Int64
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

func newTunnel(id string, want spec.Tunnel, created time.Time) *tunnel {
	t := &tunnel{id: id, created: created, rev: 1, gone: make(chan struct{})}
	t.setSpec(want)
	return t
}

func (t *tunnel) setSpec(want spec.Tunnel) {
	t.spec, t.fault = want, ""
	var secret []string
	for name := range want.RequestHeaders.All() {
		secret = append(secret, name)
	}
	r := &route{
		id: t.id, name: want.Name, spec: want, secret: secret,
		inspect: want.Inspected(),
		service: want.Origin(),
		fault:   new(fault),
		undone:  new(atomic.Bool),
	}
	for _, p := range want.Paths {
		r.forks = append(r.forks, r.fork(p))
	}
	t.route.Store(r)
}

// undo ends the connections of a route that was t's while a change was tried. Else
// they would go on to where that would have led: the relay has the claim of before,
// and uses their streams again.
func (t *tunnel) undo(r *route) {
	r.undone.Store(true)
	t.conns.cut(func(r *route) bool { return r.undone.Load() })
}

// claim returns what the relay is asked for. What it gave before is asked for
// again, so that the public address lasts; with fresh it is not.
func (t *tunnel) claim(fresh bool) wire.Claim {
	c := t.spec.Claim()
	if !fresh && !t.grant.GivenUp {
		if c.Domain == "" {
			c.Domain = t.grant.Domain
		}
		if c.RemotePort == 0 {
			c.RemotePort = t.grant.RemotePort
		}
	}
	return c
}

// remembers reports whether claim asks for what the relay gave before, and not
// only for what the person asked for.
func (t *tunnel) remembers() bool {
	return !t.grant.GivenUp && (t.spec.Domain == "" && t.grant.Domain != "" || t.spec.RemotePort == 0 && t.grant.RemotePort != 0)
}

// unclaimLocked forgets the sessions that t's endpoint is claimed on.
func (t *tunnel) unclaimLocked() {
	if t.live != nil {
		t.live.unregister(t.number, t)
	}
	if t.other.live != nil {
		t.other.live.unregister(t.other.number, t)
	}
	t.live, t.other = nil, held{}
}

func (a *Agent) tunnelStateLocked(t *tunnel, session string) string {
	switch {
	case t.stopped:
		return TunnelStopped
	case t.fault != "" || t.failure != "":
		return TunnelFailed
	case session != StateConnected:
		return TunnelWaiting
	case t.live != nil && t.live.alive():
		// Also on the session before, until the tunnel is claimed on the new one.
		return TunnelRunning
	}
	return TunnelStarting
}

func (t *tunnel) snapshot(state string) Tunnel {
	s := Tunnel{
		ID: t.id, Name: t.spec.Name, Type: t.spec.Type, Mode: t.spec.Mode,
		LocalIP: t.spec.LocalIP, LocalPort: t.spec.LocalPort, LocalScheme: t.spec.LocalScheme,
		Domain: t.spec.Domain, RemotePort: t.spec.RemotePort, HostHeader: t.spec.HostHeader,
		RequestHeaders: t.spec.RequestHeaders, ResponseHeaders: t.spec.ResponseHeaders,
		Paths: append([]spec.Path{}, t.spec.Paths...), Visitors: append([]string{}, t.spec.Visitors...), ProxyProtocol: t.spec.ProxyProtocol, Inspect: t.spec.Inspected(),
		Ephemeral: t.spec.Ephemeral, Declared: t.declared,
		PublicURL: t.grant.PublicURL, State: state, Error: cmp.Or(t.fault, t.failure), CreatedAt: t.created,
	}
	if s.Domain == "" && !t.grant.GivenUp {
		s.Domain = t.grant.Domain
	}
	if s.RemotePort == 0 && !t.grant.GivenUp {
		s.RemotePort = t.grant.RemotePort
	}
	if state == TunnelStopped {
		s.Error = ""
	}
	return s
}

func (t *tunnel) endpoint(state string) Endpoint {
	return Endpoint{
		ID: t.endpointID, TunnelID: t.id, Name: t.spec.Name, Type: t.spec.Type, Mode: t.spec.Mode,
		PublicURL: t.grant.PublicURL, Local: t.route.Load().service.String(), State: state, Since: monotime.Wall(t.since), Error: t.route.Load().faultText(),
		Connections: Connections{Open: t.counters.open.Load(), Total: t.counters.total.Load()},
		Bytes:       Bytes{In: t.counters.in.Load(), Out: t.counters.out.Load()},
	}
}

package edge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/natural"
	"adit/internal/wildcard"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/flows"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/webhook"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// Face is what visitors see of an endpoint.
type Face struct {
	Target string // of the claim: a domain or a port
	Slot   string // of the claim
	Type   string
	Mode   string
	Domain string
	Port   int // tcp, udp
}

// ID names an endpoint. It is the same each time the face is served.
func (f Face) ID() string {
	sum := sha256.Sum256([]byte(f.Target + "/" + f.Slot))
	return "ep_" + hex.EncodeToString(sum[:9])
}

func (f Face) place() string { return f.Target + "/" + f.Slot }

// SlotOf returns the slot of a claim that a tunnel of that type and mode takes.
func SlotOf(tunnelType, mode string) string {
	if mode == wire.ModePrivate {
		return store.SlotPrivate
	}
	switch tunnelType {
	case wire.TypeHTTP:
		return store.SlotPlain
	case wire.TypeHTTPS, wire.TypeTLS:
		return store.SlotTLS
	}
	return store.SlotPort
}

// Agent is one session of an agent.
type Agent struct {
	Session  link.Session
	ClientID string
	Instance string
	// Node has the session if this one has not; empty: it is here.
	Node string
	// Leaving is set while the session is only for visitors that no other can
	// take. Reorder has endpoints see a change.
	Leaving atomic.Bool
	Account *shape.Account // of the client; may be nil

	Flows flows.Table // of its UDP visitors
}

// Backend is one tunnel of an agent: where an endpoint's visitors go.
type Backend struct {
	Agent      *Agent
	Number     uint32 // within the session
	Key        string
	HostHeader string
	Requests   *message.Changes
	Answers    *message.Changes
	Unshared   bool // a stream carries the requests of one visitor's connection only
	HTTP2      bool // the origin is to be spoken to by HTTP/2, but for changes of protocol
	// Paths lead to origins of their own; longer ones come first.
	Paths []wire.ClaimPath
	// Visitors are the names of the clients that may visit a private tunnel, beside
	// the agent's own.
	Visitors []string

	forks  []*Backend // one for each of Paths
	whole  *Backend   // of a fork: whose it is
	path   string     // of a fork
	prefix string     // of a fork: path as it is told to an origin that is asked without it; else empty

	origin *origin.Origin
	busy   atomic.Int64 // visitors' requests, connections and flows with the tunnel now
	out    atomic.Bool  // it is out of turn: its origin was down, and is probed
}

// end closes the streams that no request uses.
func (b *Backend) end() {
	b.origin.Close()
	for _, of := range b.forks {
		of.end()
	}
}

// same reports whether o is the same tunnel by way of the same node.
func (b *Backend) same(o *Backend) bool {
	return b.sibling(o) && b.Agent.Node == o.Agent.Node
}

// sibling reports whether o is the same tunnel, perhaps on another session.
func (b *Backend) sibling(o *Backend) bool {
	return b.Key == o.Key && b.Agent.ClientID == o.Agent.ClientID && b.Agent.Instance == o.Agent.Instance
}

// rank says how good a way to its tunnel a backend is; lower is better.
func (b *Backend) rank() int {
	n := 0
	if b.Agent.Node != "" {
		n = 1
	}
	if b.Agent.Leaving.Load() {
		n += 2
	}
	return n
}

// Endpoint is a public face with the tunnels behind it.
type Endpoint struct {
	Face
	edge  *Edge
	Since time.Time

	id          string
	open, total atomic.Int64
	turn        atomic.Uint32
	backends    atomic.Pointer[[]*Backend] // the best way to each tunnel
	spare       atomic.Pointer[[]*Backend] // the other ways, best first; nil: none
	listener    *portListener              // tcp, udp
	Visits      presence.Set
	holding     webhook.Holding
	closed      atomic.Bool // it is served no more: table.withdraw has been at it
	// Meter is what its bytes wait for, and where they are counted.
	Meter shape.Meter
}

// ID is the ID of the endpoint's face.
func (ep *Endpoint) ID() string { return ep.id }

// Holding is how many bytes are held of webhooks.
func (ep *Endpoint) Holding() int64 { return ep.holding.Bytes() }

// Enter notes a visitor, as Set.Enter does. It is to be taken out by Leave.
func (ep *Endpoint) Enter(ctx context.Context, answer presence.Answer) (context.Context, *presence.Visit) {
	ctx, v := ep.Visits.Enter(ctx, answer)
	if ep.closed.Load() { // else review finds it when it is closed
		ep.edge.review(ep)
	}
	return ctx, v
}

// Leave takes a visitor out.
func (ep *Endpoint) Leave(v *presence.Visit) {
	if ep.Visits.Remove(v) && ep.closed.Load() {
		ep.edge.review(ep)
	}
	v.Leave()
}

// Backends are the tunnels behind the endpoint now.
func (ep *Endpoint) Backends() []*Backend {
	if p := ep.backends.Load(); p != nil {
		return *p
	}
	return nil
}

// all returns every way to the tunnels behind the endpoint.
func (ep *Endpoint) all() []*Backend {
	list := ep.Backends()
	if p := ep.spare.Load(); p != nil {
		list = append(slices.Clone(list), *p...)
	}
	return list
}

// set makes list the ways to the tunnels behind the endpoint; e.attach is held.
func (ep *Endpoint) set(list []*Backend) {
	best := make([]*Backend, 0, len(list))
	var spare []*Backend
	for _, b := range list {
		at := slices.IndexFunc(best, b.sibling)
		switch {
		case at < 0:
			best = append(best, b)
			continue
		case b.rank() < best[at].rank():
			b, best[at] = best[at], b
		}
		spare = append(spare, b)
	}
	if spare == nil {
		ep.spare.Store(nil)
	} else {
		slices.SortStableFunc(spare, func(a, b *Backend) int { return a.rank() - b.rank() })
		ep.spare.Store(&spare)
	}
	ep.backends.Store(&best)
}

// Reorder sorts the ways to the agents' tunnels anew, after their Leaving has
// changed.
func (e *Edge) Reorder(agents ...*Agent) {
	if len(agents) == 0 {
		return
	}
	moved := make(map[*Agent]bool, len(agents))
	for _, a := range agents {
		moved[a] = true
	}
	e.attach.Lock()
	defer e.attach.Unlock()
	for _, ep := range e.Endpoints() {
		if list := ep.all(); len(list) > 1 && slices.ContainsFunc(list, func(b *Backend) bool { return moved[b.Agent] }) {
			ep.set(list)
		}
	}
}

// Counters is a snapshot of an endpoint's figures.
type Counters struct {
	Open     int64 `json:"open"`
	Total    int64 `json:"total"`
	BytesIn  int64 `json:"bytes_in"`
	BytesOut int64 `json:"bytes_out"`
}

// Counters returns the endpoint's figures.
func (ep *Endpoint) Counters() Counters {
	in, out := ep.Meter.Bytes()
	return Counters{ep.open.Load(), ep.total.Load(), in, out}
}

// begin counts a visitor in, and the returned function out.
func (ep *Endpoint) begin() func() {
	ep.open.Add(1)
	ep.total.Add(1)
	return func() { ep.open.Add(-1) }
}

// table finds endpoints by what a visitor asks for.
type table struct {
	mu        sync.RWMutex
	endpoints map[string]*Endpoint   // that are served, by place
	leaving   map[*Endpoint]struct{} // that are closed and have visitors still
	passing   atomic.Int32           // how many are of type tls
	wildcards atomic.Int32           // how many are of a wildcard
}

func (t *table) get(place string) *Endpoint {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.endpoints[place]
}

// domain finds the endpoint of a name, or of a wildcard itself.
func (t *table) domain(name, slot string) *Endpoint {
	return t.get(Face{Target: store.TargetDomain(name), Slot: slot}.place())
}

// count counts an endpoint that begins to be served, n 1, or ends, n -1.
func (t *table) count(f Face, n int32) {
	if f.Type == wire.TypeTLS {
		t.passing.Add(n)
	}
	if wildcard.Is(f.Domain) {
		t.wildcards.Add(n)
	}
}

// Endpoints returns all endpoints that are served, by target.
func (e *Edge) Endpoints() []*Endpoint {
	e.table.mu.RLock()
	list := make([]*Endpoint, 0, len(e.table.endpoints))
	for _, ep := range e.table.endpoints {
		list = append(list, ep)
	}
	e.table.mu.RUnlock()
	slices.SortFunc(list, func(a, b *Endpoint) int {
		return cmp.Or(natural.Compare(a.Target, b.Target), cmp.Compare(a.Slot, b.Slot))
	})
	return list
}

// Served counts the endpoints that are served, by type.
func (e *Edge) Served() map[string]int {
	e.table.mu.RLock()
	defer e.table.mu.RUnlock()
	count := make(map[string]int)
	for _, ep := range e.table.endpoints {
		count[ep.Type]++
	}
	return count
}

// Attach puts a tunnel behind a face, which is opened if it is new. A tunnel of
// the same agent and key is replaced, and in standard mode any other; visitors
// that are under way stay where they are. The error says why a port cannot be
// opened, or is ErrEnding.
func (e *Edge) Attach(f Face, b *Backend) (*Endpoint, error) {
	e.attach.Lock()
	defer e.attach.Unlock()
	if e.ending {
		return nil, ErrEnding
	}
	e.fork(b)
	ep := e.table.get(f.place())
	if ep != nil && (ep.Type != f.Type || ep.Mode != f.Mode) {
		e.drop(ep)
		ep = nil
	}
	if ep == nil {
		ep = &Endpoint{Face: f, edge: e, Since: time.Now(), id: f.ID(), holding: webhook.Holding{Of: &e.bodies}}
		ep.backends.Store(&[]*Backend{b})
		e.bind(ep)
		if err := e.openPort(ep); err != nil {
			return nil, err
		}
		e.table.count(f, 1)
		e.table.mu.Lock()
		e.table.endpoints[f.place()] = ep
		e.table.mu.Unlock()
		return ep, nil
	}
	next := []*Backend{b}
	for _, old := range ep.all() {
		if (f.Mode == wire.ModeBalanced || old.sibling(b)) && !old.same(b) {
			next = append(next, old)
		} else {
			old.end()
		}
	}
	ep.set(next)
	e.bind(ep)
	ep.endUninvited()
	return ep, nil
}

// Detach takes a tunnel from behind its face, which is closed if no other is left.
// Visitors that are under way stay where they are, but for flows of a tunnel that has
// no other way.
func (e *Edge) Detach(f Face, b *Backend) {
	e.attach.Lock()
	defer e.attach.Unlock()
	b.end()
	ep := e.table.get(f.place())
	if ep == nil {
		return
	}
	next := slices.DeleteFunc(slices.Clone(ep.all()), func(o *Backend) bool { return o == b })
	ep.set(next)
	if len(next) == 0 {
		e.drop(ep)
		return
	}
	if ep.listener != nil && ep.listener.udp != nil && !slices.ContainsFunc(next, b.sibling) {
		// Their agent drops what comes for them from now on: another is to have it.
		ep.listener.udp.end(func(f *flow) bool { return f.backend.sibling(b) })
	}
}

// drop closes an endpoint; e.attach is held. Visits that are under way go on, but
// for flows, whose packets come by its port.
func (e *Edge) drop(ep *Endpoint) {
	e.table.withdraw(ep)
	e.review(ep)
	e.table.count(ep.Face, -1)
	if ep.listener != nil {
		ep.listener.close()
	}
}

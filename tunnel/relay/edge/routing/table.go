// Package routing holds what a relay serves: which endpoint a visitor's name, port or target
// leads to, which agents' tunnels are behind that endpoint, and in which order to try them. It
// tracks the visits of each endpoint, so that an endpoint that was given back remains known
// until its last visit ends. Other packages serve the visitors and decide who may have which
// name or port.
package routing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/natural"
	"adit/internal/wildcard"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/edge/webhook"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// ErrEnding is Attach's answer when the edge has begun to end.
var ErrEnding = errors.New("the edge is ending")

// Config is what a Table goes by. Alone, Open and Bind may be nil.
type Config struct {
	// Alone reports whether a name is not to be led by the wildcard that it is one of.
	Alone func(domain string) bool
	// Open opens the port of a new endpoint, if it has one, and has it be served.
	Open func(*Endpoint) (Port, error)
	// Bind sets what bounds the bytes of an endpoint, whose tunnels are others now.
	Bind func(*Endpoint)
	// Go runs what goes on aside, such as a probe, as long as Life lasts.
	Go   func(func())
	Life context.Context
	// Grace is how long visitors wait for an agent whose session was lost; 0: not at all.
	Grace time.Duration
	// MayBeBack reports whether a target's agents are let in. May be nil.
	MayBeBack func(target string) bool
	// OriginTime and Asks are for origin.Config.
	OriginTime time.Duration
	Asks       func(context.Context) (v origin.Visit, only bool)
	Bodies     *webhook.Room // for webhooks
	Log        *slog.Logger
}

// Port is the public port of an endpoint that has one.
type Port interface {
	StopAccepting()
	Close()
	// EndFlows ends those flows that are picked, by where they go and from where.
	EndFlows(pick func(*Backend, netip.Addr) bool)
}

// Table finds endpoints by what a visitor asks for.
type Table struct {
	cfg Config

	attach sync.Mutex // one change at a time; guards ending
	ending bool       // nothing more is attached

	mu        sync.RWMutex
	endpoints map[string]*Endpoint   // that are served, by place
	leaving   map[*Endpoint]struct{} // that are closed and have visitors still
	// Of endpoints that are neither served nor leaving.
	bytesIn, bytesOut int64

	awaited awaited

	passing   atomic.Int32 // how many are of type tls
	wildcards atomic.Int32 // how many are of a wildcard
}

// New returns a table of nothing.
func New(cfg Config) *Table {
	if cfg.Alone == nil {
		cfg.Alone = func(string) bool { return false }
	}
	if cfg.MayBeBack == nil {
		cfg.MayBeBack = func(string) bool { return true }
	}
	if cfg.Open == nil {
		cfg.Open = func(*Endpoint) (Port, error) { return nil, nil }
	}
	if cfg.Bind == nil {
		cfg.Bind = func(*Endpoint) {}
	}
	return &Table{cfg: cfg, endpoints: make(map[string]*Endpoint), leaving: make(map[*Endpoint]struct{})}
}

func (t *Table) get(place string) *Endpoint {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.endpoints[place]
}

// Serves reports whether there is an endpoint of a target.
func (t *Table) Serves(target string) bool {
	return slices.ContainsFunc(claims.Slots(), func(slot string) bool { return t.get(Face{Target: target, Slot: slot}.Place()) != nil })
}

// own finds the endpoint of a name, or of a wildcard itself.
func (t *Table) own(name, slot string) *Endpoint {
	return t.get(Face{Target: claims.TargetDomain(name), Slot: slot}.Place())
}

// count counts an endpoint that begins to be served, n 1, or ends, n -1.
func (t *Table) count(f Face, n int32) {
	if f.Type == wire.TypeTLS {
		t.passing.Add(n)
	}
	if wildcard.Is(f.Domain) {
		t.wildcards.Add(n)
	}
}

// Endpoints returns all endpoints that are served, by target.
func (t *Table) Endpoints() []*Endpoint {
	t.mu.RLock()
	list := make([]*Endpoint, 0, len(t.endpoints))
	for _, ep := range t.endpoints {
		list = append(list, ep)
	}
	t.mu.RUnlock()
	slices.SortFunc(list, func(a, b *Endpoint) int {
		return cmp.Or(natural.Compare(a.Target, b.Target), cmp.Compare(a.Slot, b.Slot))
	})
	return list
}

// Served counts the endpoints that are served, by type.
func (t *Table) Served() map[string]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	count := make(map[string]int)
	for _, ep := range t.endpoints {
		count[ep.Type]++
	}
	return count
}

// Attach puts a tunnel behind a face, which is opened if it is new. A tunnel of
// the same agent and key is replaced, and in standard mode any other; visitors
// that are under way stay where they are, but for flows of a session that the agent has
// left for another. The error says why a port cannot be
// opened, or is ErrEnding.
func (t *Table) Attach(f Face, b *Backend) (*Endpoint, error) {
	t.attach.Lock()
	defer t.attach.Unlock()
	if t.ending {
		return nil, ErrEnding
	}
	t.fork(b)
	ep := t.get(f.Place())
	if ep != nil && (ep.Type != f.Type || ep.Mode != f.Mode) {
		t.drop(ep, false)
		ep = nil
	}
	if ep == nil {
		ep = &Endpoint{Face: f, table: t, Since: time.Now(), id: f.ID(), holding: webhook.Holding{Of: t.cfg.Bodies}}
		ep.backends.Store(&[]*Backend{b})
		t.cfg.Bind(ep)
		if ep.port = t.awaited.take(f); ep.port == nil {
			port, err := t.cfg.Open(ep)
			if err != nil {
				return nil, err
			}
			ep.port = port
		}
		t.count(f, 1)
		t.mu.Lock()
		t.endpoints[f.Place()] = ep
		t.mu.Unlock()
		t.awaited.end(f)
		return ep, nil
	}
	next := []*Backend{b}
	var left *Backend // by its agent, for another session
	for _, old := range ep.all() {
		if (f.Mode == wire.ModeBalanced || old.sibling(b)) && !old.same(b) {
			next = append(next, old)
			continue
		}
		if old.same(b) && old.Agent != b.Agent {
			left = old
		}
		old.end()
	}
	ep.set(next)
	t.cfg.Bind(ep)
	ep.endUninvited()
	if left != nil {
		// Who is at the other end of the session before may be gone for good, and its
		// flows have no end by which to find out.
		ep.EndFlows(func(of *Backend, _ netip.Addr) bool { return of == left })
	}
	return ep, nil
}

// Detach takes a tunnel from behind its face, which is closed if no other is left.
// Visitors that are under way stay where they are, but for flows of a tunnel that has
// no other way.
func (t *Table) Detach(f Face, b *Backend) {
	t.attach.Lock()
	defer t.attach.Unlock()
	t.detach(f, b, false)
}

// Lose is Detach where the tunnel's session has ended: its agent may be back soon.
func (t *Table) Lose(f Face, b *Backend) {
	t.attach.Lock()
	defer t.attach.Unlock()
	t.detach(f, b, true)
}

// detach is Lose or Detach; t.attach is held.
func (t *Table) detach(f Face, b *Backend, lost bool) {
	b.end()
	ep := t.get(f.Place())
	if ep == nil {
		return
	}
	next := slices.DeleteFunc(slices.Clone(ep.all()), func(o *Backend) bool { return o == b })
	ep.set(next)
	if len(next) == 0 {
		t.drop(ep, lost && t.expect(f, b, ep.port))
		return
	}
	if !slices.ContainsFunc(next, b.sibling) {
		// Their agent drops what comes for them from now on: another is to have it.
		ep.EndFlows(func(of *Backend, _ netip.Addr) bool { return of.sibling(b) })
	}
}

// drop closes an endpoint, and its port unless that is kept; t.attach is held. Visits
// that are under way go on, but for flows, whose packets come by its port.
func (t *Table) drop(ep *Endpoint, kept bool) {
	t.withdraw(ep)
	t.review(ep)
	t.count(ep.Face, -1)
	if ep.port != nil && !kept {
		ep.port.Close()
	}
}

// StopAccepting has nothing more be attached, and ports take nobody new.
func (t *Table) StopAccepting() {
	t.attach.Lock()
	defer t.attach.Unlock()
	t.ending = true
	t.awaited.close()
	for _, ep := range t.Endpoints() {
		if ep.port != nil {
			ep.port.StopAccepting()
		}
	}
}

// Close closes all endpoints.
func (t *Table) Close() {
	t.attach.Lock()
	defer t.attach.Unlock()
	for _, ep := range t.Endpoints() {
		t.drop(ep, false)
	}
}

// Passes reports whether there is a tunnel whose TLS is not ended here, or is expected.
func (t *Table) Passes() bool { return t.passing.Load() > 0 || t.awaited.passing.Load() > 0 }

// At finds the endpoint of a face; nil: it is not served.
func (t *Table) At(f Face) *Endpoint { return t.get(f.Place()) }

// Private finds the endpoint of a private tunnel; nil: there is none.
func (t *Table) Private(target string) *Endpoint {
	return t.get(Face{Target: target, Slot: claims.SlotPrivate}.Place())
}

// Invitations are the faces of the private tunnels that let the guest in, by target. What
// only the guest's own instance serves is not among them.
func (t *Table) Invitations(g visitor.Guest, instance string) []Face {
	foreign := func(b *Backend) bool { return b.Agent.ClientID != g.ClientID || b.Agent.Instance != instance }
	var faces []Face
	t.mu.RLock()
	for _, ep := range t.endpoints {
		if ep.Mode == wire.ModePrivate && ep.Invites(g) && slices.ContainsFunc(ep.Backends(), foreign) {
			faces = append(faces, ep.Face)
		}
	}
	t.mu.RUnlock()
	slices.SortFunc(faces, func(a, b Face) int { return natural.Compare(a.Target, b.Target) })
	return faces
}

// Reorder sorts the ways to the tunnels behind faces anew, after an agent's Leaving or
// Unheard has changed.
func (t *Table) Reorder(faces ...Face) {
	t.attach.Lock()
	defer t.attach.Unlock()
	for _, f := range faces {
		if ep := t.get(f.Place()); ep != nil {
			ep.set(ep.all())
		}
	}
}

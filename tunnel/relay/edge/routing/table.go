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

// ErrEnding is returned by Attach once the edge has begun to shut down.
var ErrEnding = errors.New("the edge is ending")

// Config configures a Table. Alone, Open and Bind may be nil.
type Config struct {
	// Alone reports whether a name is not served by the wildcard that covers it.
	Alone func(domain string) bool
	// Open opens and serves the port of a new endpoint, if it has one.
	Open func(*Endpoint) (Port, error)
	// Bind is called when the tunnels of an endpoint have changed, to set its bandwidth
	// limits.
	Bind func(*Endpoint)
	// Go runs a background task, such as a probe, for no longer than Life lasts.
	Go   func(func())
	Life context.Context
	// Grace is how long visitors wait for an agent whose session was lost; 0 means not at all.
	Grace time.Duration
	// MayBeBack reports whether a target's agents would be admitted again. May be nil.
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
	// EndFlows ends the flows for which pick returns true, given the flow's backend and the
	// visitor's address.
	EndFlows(pick func(*Backend, netip.Addr) bool)
}

// Table finds the endpoint for what a visitor asks for.
type Table struct {
	cfg Config

	attach sync.Mutex // serialises changes, and guards ending
	ending bool       // nothing more may be attached

	mu        sync.RWMutex
	endpoints map[string]*Endpoint   // served endpoints, by place
	leaving   map[*Endpoint]struct{} // closed endpoints that still have visitors
	// The bytes of endpoints that are neither served nor leaving.
	bytesIn, bytesOut int64

	awaited awaited

	passing   atomic.Int32 // how many are of type tls
	wildcards atomic.Int32 // how many are wildcards
}

// New returns an empty table.
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

// Serves reports whether the target has an endpoint.
func (t *Table) Serves(target string) bool {
	return slices.ContainsFunc(claims.Slots(), func(slot string) bool { return t.get(Face{Target: target, Slot: slot}.Place()) != nil })
}

// own returns the endpoint of exactly this name or wildcard.
func (t *Table) own(name, slot string) *Endpoint {
	return t.get(Face{Target: claims.TargetDomain(name), Slot: slot}.Place())
}

// count adds n to the counters for an endpoint's kind: 1 when it begins to be served, -1 when
// it ends.
func (t *Table) count(f Face, n int32) {
	if f.Type == wire.TypeTLS {
		t.passing.Add(n)
	}
	if wildcard.Is(f.Domain) {
		t.wildcards.Add(n)
	}
}

// Endpoints returns all endpoints that are served, sorted by target.
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

// Served returns the number of endpoints that are served, by type.
func (t *Table) Served() map[string]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	count := make(map[string]int)
	for _, ep := range t.endpoints {
		count[ep.Type]++
	}
	return count
}

// Attach puts a tunnel behind a face, and opens the face if it is new. It replaces the tunnel
// with the same agent and key and, in standard mode, any other tunnel. Current visitors stay
// where they are, except for flows of a session that the agent has replaced by another. The
// error says why a port cannot be opened, or is ErrEnding.
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
	var left *Backend // the agent has replaced its session
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
		// The other end of the old session may be gone for good, and its flows would have no
		// way to find out.
		ep.EndFlows(func(of *Backend, _ netip.Addr) bool { return of == left })
	}
	return ep, nil
}

// Detach removes a tunnel from behind its face, and closes the face if that was the last one.
// Current visitors stay where they are, except for flows of a tunnel that no other way leads
// to.
func (t *Table) Detach(f Face, b *Backend) {
	t.attach.Lock()
	defer t.attach.Unlock()
	t.detach(f, b, false)
}

// Lose is Detach for a tunnel whose session has ended and whose agent may soon be back.
func (t *Table) Lose(f Face, b *Backend) {
	t.attach.Lock()
	defer t.attach.Unlock()
	t.detach(f, b, true)
}

// detach implements Detach and Lose. The caller holds t.attach.
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
		// The agent drops their packets from now on, so another tunnel has to take them.
		ep.EndFlows(func(of *Backend, _ netip.Addr) bool { return of.sibling(b) })
	}
}

// drop closes an endpoint, and its port unless that is kept. The caller holds t.attach. Visits
// go on, except for flows, whose packets come through the port.
func (t *Table) drop(ep *Endpoint, kept bool) {
	t.withdraw(ep)
	t.review(ep)
	t.count(ep.Face, -1)
	if ep.port != nil && !kept {
		ep.port.Close()
	}
}

// StopAccepting makes Attach fail and stops ports from accepting new visitors.
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

// Passes reports whether there is, or may soon be again, a tunnel whose TLS is passed through.
func (t *Table) Passes() bool { return t.passing.Load() > 0 || t.awaited.passing.Load() > 0 }

// At returns the endpoint of a face, or nil if it is not served.
func (t *Table) At(f Face) *Endpoint { return t.get(f.Place()) }

// Private returns the endpoint of a private tunnel, or nil.
func (t *Table) Private(target string) *Endpoint {
	return t.get(Face{Target: target, Slot: claims.SlotPrivate}.Place())
}

// Invitations returns the faces of the private tunnels that admit the guest, sorted by target.
// Tunnels that only the guest's own instance serves are left out.
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

// Reorder sorts the ways to the tunnels behind faces again, after an agent's Leaving or
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

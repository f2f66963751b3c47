// Package membership knows which nodes a relay has, as seen by one of them. It maintains
// that node's entry in the store, watches the entries of the others, and picks the nodes
// that agents should try. How nodes reach each other is up to package nodes.
package membership

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

const (
	renewEvery = 3 * time.Second
	renewTime  = 5 * time.Second // long enough for a slow cluster to answer
	leaveTime  = 2 * time.Second // short: a node that is shutting down does not need the answer
	meetTime   = 3 * time.Second
	// awayEvery is how often a node checks whether it can reach the store, to tell the
	// others.
	awayEvery = 500 * time.Millisecond
	// sureTime is how long after its last renewal a node treats its knowledge of clients
	// as complete.
	sureTime = 10 * time.Second
)

// Store holds the nodes' entries: *store.Nodes.
type Store interface {
	Renew(ctx context.Context, v store.Node) error
	Leave(ctx context.Context, id string) error
	List() []store.Node
	OnChange(f func())
}

// Mesh is this node's sessions with the others: *nodes.Mesh.
type Mesh interface {
	Know(list []nodes.Node)
	Peers() map[string]nodes.PeerState
	StoreAway(away bool)
}

// Config contains what Members is made of.
type Config struct {
	Node     store.Node        // this node, without its figures
	Self     func() store.Node // this node, with its current figures
	Draining func() bool       // whether this node is shutting down
	Store    Store
	// Connected reports whether the store can be reached.
	Connected func() bool
	Mesh      Mesh
	Changed   func()           // called when agents should be told about other nodes
	Double    func(store.Node) // called for another relay that uses this node's id
	Log       *slog.Logger
}

// Members tracks the nodes of a relay.
type Members struct {
	cfg  Config
	log  *slog.Logger
	news chan struct{} // room for one

	mu      sync.Mutex
	known   map[string]store.Node // other nodes, including those that have lost their lease but still answer
	missing missing
	told    string // what agents were last told

	renewed atomic.Int64 // when the store last accepted this node's entry, by monotime
	listed  atomic.Bool  // this node has stored its entry
	lost    atomic.Bool  // its last renewal failed
	double  string       // the boot of a relay that uses this node's id; used only by look
}

// New returns the members according to a store that was just read.
func New(c Config) *Members {
	m := &Members{cfg: c, log: c.Log, news: make(chan struct{}, 1), known: make(map[string]store.Node)}
	m.missing = missing{make(map[string]Missed), make(map[string]string)}
	m.renewed.Store(int64(monotime.Now()))
	c.Store.OnChange(m.Look)
	return m
}

// Look makes Run look at the nodes again. It does not wait.
func (m *Members) Look() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// Run keeps this node's lease, and follows the leases of the others, until ctx ends. Then
// it gives the lease up.
func (m *Members) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { m.renew(ctx) })
	wg.Go(func() { m.tellAway(ctx) })
	m.look()
	for {
		select {
		case <-m.news:
			m.look()
		case <-ctx.Done():
			wg.Wait()
			m.leave()
			return
		}
	}
}

// Meet waits until this node knows what the others have, so that its first visitors find
// everything that is served. Visitors that come earlier wait. Meet does not wait long for
// a node that is listed but does not answer.
func (m *Members) Meet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !m.Whole() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// renew keeps the lease. Losing it does no harm by itself: nodes that have sessions with
// each other keep them.
func (m *Members) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		m.Renew(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Renew writes this node's current entry to the store.
func (m *Members) Renew(ctx context.Context) {
	wait := renewTime
	if m.cfg.Draining() {
		wait = leaveTime
	}
	inTime, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := m.cfg.Store.Renew(inTime, m.cfg.Self())
	if err == nil {
		m.listed.Store(true)
		m.renewed.Store(int64(monotime.Now()))
	}
	switch lost := err != nil; {
	case ctx.Err() != nil: // this node is shutting down
	case m.lost.Swap(lost) == lost: // already logged
	case lost:
		m.log.Warn("this node's lease is not renewed; it tries again every 3 seconds", "error", err)
	default:
		m.log.Info("this node's lease is renewed again")
	}
}

// Sure reports whether this node hears what others write. A node that is cut off may not
// know a client that was just added, or its new token.
func (m *Members) Sure() bool {
	return m.cfg.Connected() && monotime.Now()-time.Duration(m.renewed.Load()) < sureTime
}

// tellAway tells the other nodes whether this one can reach the store, until ctx ends.
func (m *Members) tellAway(ctx context.Context) {
	tick := time.NewTicker(awayEvery)
	defer tick.Stop()
	for {
		m.cfg.Mesh.StoreAway(!m.cfg.Connected())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// CutOff reports whether others may be making changes that this node does not hear of.
// That is so if this node cannot reach the store, while a node that was last listed can,
// or does not answer. If no node reaches the store, nobody changes anything, and each
// node is as good as the others.
func (m *Members) CutOff() bool {
	if m.cfg.Connected() {
		return false
	}
	peers := m.cfg.Mesh.Peers()
	return slices.ContainsFunc(m.cfg.Store.List(), func(n store.Node) bool {
		p := peers[n.ID]
		return n.ID != m.cfg.Node.ID && !(p.Connected && p.StoreAway)
	})
}

// Renewed returns when the store last accepted this node's entry, by monotime.
func (m *Members) Renewed() time.Duration { return time.Duration(m.renewed.Load()) }

// alone reports another relay that uses this node's id. Each of the two takes the other's
// entry for its own, and visitors of one never reach agents of the other.
func (m *Members) alone(own store.Node) {
	if own.Boot == m.cfg.Node.Boot || own.Boot == m.double {
		return
	}
	m.double = own.Boot
	m.cfg.Double(own)
}

func (m *Members) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := m.cfg.Store.Leave(ctx, m.cfg.Node.ID); err != nil {
		m.log.Info("this node's lease was left to end by itself", "error", err)
	}
}

// look reads the list of nodes, and tells agents if it has changed.
func (m *Members) look() {
	peers := m.cfg.Mesh.Peers()
	told, own := m.listed.Load(), m.cfg.Node // if told, what is read below is this node's entry or newer
	var list []nodes.Node
	m.mu.Lock()
	listed := map[string]bool{}
	for _, n := range m.cfg.Store.List() {
		if n.ID == m.cfg.Node.ID {
			own = n
			continue
		}
		listed[n.ID] = true
		m.missing.there(n.ID)
		m.known[n.ID] = n
		list = append(list, nodes.Node{ID: n.ID, Address: n.NodeAddress})
	}
	for id, n := range m.known {
		if n.Draining || peers[id].Draining { // it may not be listed, for example if the store is full
			m.missing.ends(n)
		}
		if !listed[id] && !peers[id].Connected {
			delete(m.known, id)
			m.missing.gone(n)
		}
	}
	m.mu.Unlock()
	if told {
		m.alone(own)
	}
	m.cfg.Mesh.Know(list)
	var ids []string
	for _, n := range m.Others() {
		ids = append(ids, n.ID+" "+n.AgentAddress)
	}
	now := strings.Join(ids, ", ")
	m.mu.Lock()
	news := now != m.told
	m.told = now
	m.mu.Unlock()
	if !news {
		return
	}
	m.log.Info("the relay's other nodes", "nodes", now)
	m.cfg.Changed()
}

// Others returns the nodes that answer this one and are not shutting down, by id.
func (m *Members) Others() []store.Node {
	peers := m.cfg.Mesh.Peers()
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []store.Node
	for id, n := range m.known {
		if p := peers[id]; p.Connected && !p.Draining && !n.Draining {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b store.Node) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Self returns this node as it is now entered in the store.
func (m *Members) Self() store.Node { return m.cfg.Self() }

// Known returns the other nodes by id, including those that have lost their lease but
// still answer.
func (m *Members) Known() map[string]store.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.known)
}

// ForAgent returns all nodes in the order in which an agent should try them. The order is
// random, with less busy nodes more likely to come first, so that agents spread.
func (m *Members) ForAgent() []wire.Node {
	list := m.Others()
	if len(list) == 0 {
		return nil
	}
	weight := make(map[string]float64, len(list))
	for _, n := range list {
		weight[n.ID] = rand.ExpFloat64() * float64(n.Sessions+1)
	}
	slices.SortFunc(list, func(a, b store.Node) int { return cmp.Compare(weight[a.ID], weight[b.ID]) })
	out := make([]wire.Node, 0, len(list)+1)
	for _, n := range list {
		out = append(out, wire.Node{ID: n.ID, Address: n.AgentAddress})
	}
	if m.cfg.Draining() {
		return out
	}
	return append(out, wire.Node{ID: m.cfg.Node.ID, Address: m.cfg.Node.AgentAddress})
}

// Whole reports whether this node knows what all others have. If so, what it does not
// know of does not exist.
func (m *Members) Whole() bool {
	peers := m.cfg.Mesh.Peers()
	for _, n := range m.cfg.Store.List() {
		if n.ID != m.cfg.Node.ID && !peers[n.ID].Connected {
			return false
		}
	}
	return m.cfg.Connected()
}

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
	leaveTime  = 2 * time.Second // short: a node that ends has no need of an answer
	meetTime   = 3 * time.Second
	// awayEvery is how often a node looks whether it reaches the store, to tell the others.
	awayEvery = 500 * time.Millisecond
	// sureTime is how long after its last renewal a node takes what it knows of
	// clients to be all there is to know.
	sureTime = 10 * time.Second
)

// Store has the nodes' entries: *store.Nodes.
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

// Config is what Members are made of.
type Config struct {
	Node     store.Node        // this one, but for its figures
	Self     func() store.Node // this one, with its figures now
	Draining func() bool       // whether it ends
	Store    Store
	// Connected reports whether the store can be reached.
	Connected func() bool
	Mesh      Mesh
	Changed   func()           // is called when agents should hear of other nodes
	Double    func(store.Node) // is told of another relay that goes by this node's id
	Log       *slog.Logger
}

// Members are the nodes of a relay.
type Members struct {
	cfg  Config
	log  *slog.Logger
	news chan struct{} // room for one

	mu      sync.Mutex
	known   map[string]store.Node // others, also while their lease is lost and they answer
	missing missing
	told    string // what agents were told last

	renewed atomic.Int64 // when the store last took this node's entry, by monotime
	listed  atomic.Bool  // this node has told of itself
	lost    atomic.Bool  // its lease was not renewed last
	double  string       // the boot of a relay that was found to have this node's id; used by look alone
}

// New returns the members of a store that was just read.
func New(c Config) *Members {
	m := &Members{cfg: c, log: c.Log, news: make(chan struct{}, 1), known: make(map[string]store.Node)}
	m.missing = missing{make(map[string]Missed), make(map[string]string)}
	m.renewed.Store(int64(monotime.Now()))
	c.Store.OnChange(m.Look)
	return m
}

// Look has Run look at the nodes again. It does not wait.
func (m *Members) Look() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// Run keeps this node's lease, and follows who else has one, until ctx ends. Then it
// gives the lease up.
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

// Meet waits until this node knows what the others have, so that its first
// visitors find all that is served; those who come before wait. A node that is
// listed and does not answer is not waited for long.
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

// renew keeps the lease. One that is lost does no harm by itself: nodes that have
// sessions with each other keep them.
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

// Renew puts this node's entry, as it is now, into the store.
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
	case ctx.Err() != nil: // this node ends
	case m.lost.Swap(lost) == lost: // it was told
	case lost:
		m.log.Warn("this node's lease is not renewed; it tries again every 3 seconds", "error", err)
	default:
		m.log.Info("this node's lease is renewed again")
	}
}

// Sure reports whether this node hears of what others write. One that is cut off
// may not know a client that was just added, or its new token.
func (m *Members) Sure() bool {
	return m.cfg.Connected() && monotime.Now()-time.Duration(m.renewed.Load()) < sureTime
}

// tellAway tells the other nodes whether this one reaches the store, until ctx ends.
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

// CutOff reports whether others may change what this node does not hear of: it cannot
// reach the store, and a node that was listed last can, or does not answer. Where no node
// reaches the store, nobody changes anything, and each is as good as the others.
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

// Renewed is when the store last took this node's entry, by monotime.
func (m *Members) Renewed() time.Duration { return time.Duration(m.renewed.Load()) }

// alone tells of another relay that goes by this node's id: each then takes the other's
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

// look takes the list of nodes in, and tells agents if it is another.
func (m *Members) look() {
	peers := m.cfg.Mesh.Peers()
	told, own := m.listed.Load(), m.cfg.Node // what is read after it is this node's entry, or came after that
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
		if n.Draining || peers[id].Draining { // and may not be listed, as where the store is full
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

// Others are the nodes that answer this one and do not end, by id.
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

// Self is this node as the store is told of it now.
func (m *Members) Self() store.Node { return m.cfg.Self() }

// Known are the other nodes by id, those too whose lease is lost and that answer.
func (m *Members) Known() map[string]store.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.known)
}

// ForAgent is the list of all nodes as an agent should try them: by chance, and
// those with less to do more likely first, so that agents spread.
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

// Whole reports whether this node knows what all others have: then what nobody
// has is nowhere.
func (m *Members) Whole() bool {
	peers := m.cfg.Mesh.Peers()
	for _, n := range m.cfg.Store.List() {
		if n.ID != m.cfg.Node.ID && !peers[n.ID].Connected {
			return false
		}
	}
	return m.cfg.Connected()
}

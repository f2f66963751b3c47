package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

const (
	renewEvery = 3 * time.Second
	renewTime  = 5 * time.Second // long enough for a slow cluster to answer
	leaveTime  = 2 * time.Second // short: a node that ends has no need of an answer
	meetTime   = 3 * time.Second
	// sureTime is how long after its last renewal a node takes what it knows of
	// clients to be all there is to know.
	sureTime = 10 * time.Second
)

// members is what a node of several knows of the others. A relay alone has none.
type members struct {
	relay *Relay
	mesh  *nodes.Mesh
	far   far
	self  store.Node // but for its figures
	news  chan struct{}

	certMu  sync.Mutex
	cert    tls.Certificate
	certAge time.Time

	mu    sync.Mutex
	known map[string]store.Node // others, also while their lease is lost and they answer
	told  string                // what agents were told last

	renewed atomic.Int64 // when the store last took this node's entry, by monotime
	listed  atomic.Bool  // this node has told of itself
	double  string       // the boot of a relay that was found to have this node's id; used by look alone
}

// openNodes makes the node known to itself, and where the store is shared opens
// what it needs for the others.
func (r *Relay) openNodes() error {
	var err error
	if r.id, err = datadir.NodeID(r.cfg.DataDir); err != nil {
		return err
	}
	if r.store.Nodes == nil {
		return nil
	}
	m := &members{relay: r, news: make(chan struct{}, 1), known: make(map[string]store.Node)}
	m.far.members = m
	m.renewed.Store(int64(monotime.Now())) // all of the store was just read
	ln, err := listen("nodes.listen", r.cfg.Nodes.Listen)
	if err != nil {
		return err
	}
	var boot [8]byte
	rand.Read(boot[:])
	m.self = store.Node{
		ID: r.id, Name: r.node, Version: r.opts.Version, Boot: hex.EncodeToString(boot[:]), Started: r.started.UTC(),
		AgentAddress: r.cfg.Nodes.AgentAddress, NodeAddress: r.cfg.Nodes.Address,
	}
	if m.self.AgentAddress == "" {
		m.self.AgentAddress = r.tunnelAddr()
	}
	if m.self.NodeAddress == "" {
		host, _, _ := net.SplitHostPort(r.cfg.Nodes.Listen)
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = r.store.Nodes.LocalHost()
		}
		m.self.NodeAddress = net.JoinHostPort(host, strconv.Itoa(portOf(ln.Addr())))
	}
	m.mesh, err = nodes.New(nodes.Config{
		ID: r.id, Fingerprint: r.authority.Fingerprint(), Certificate: m.certificate,
		Listener: ln, Local: local{r}, Far: &m.far, Log: r.log,
	})
	if err != nil {
		ln.Close()
		return fmt.Errorf("nodes.listen: %w", err)
	}
	r.members = m
	r.store.Nodes.OnChange(m.changed)
	r.store.Claims.OnChange(func(target string) { r.task(func() { m.far.review(target) }) })
	r.store.OnWrite(func(c store.Change) {
		if line, err := json.Marshal(c); err == nil {
			m.mesh.Tell(line)
		}
	})
	return nil
}

// certificate is what this node shows to others; it is issued anew every day.
func (m *members) certificate() (*tls.Certificate, error) {
	m.certMu.Lock()
	defer m.certMu.Unlock()
	if now := time.Now(); now.Sub(m.certAge) > linkCertLife {
		cert, err := m.relay.authority.IssueNode(m.relay.id)
		if err != nil {
			return nil, err
		}
		m.cert, m.certAge = cert, now
	}
	cert := m.cert
	return &cert, nil
}

// changed has run look at the list of nodes. It does not wait.
func (m *members) changed() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// run keeps this node's lease, and the sessions with the others, until ctx ends.
func (m *members) run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.mesh.Run(ctx) })
	wg.Go(func() { m.renew(ctx) })
	wg.Go(func() { m.rebalance(ctx) })
	m.look()
	for {
		select {
		case <-m.news:
			m.look()
		case <-ctx.Done():
			wg.Wait()
			m.leave()
			return nil
		}
	}
}

// meet waits until this node knows what the others have, so that its first
// visitors find all that is served; those who come before wait. A node that is
// listed and does not answer is not waited for long.
func (m *members) meet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !m.whole() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// renew keeps the lease, and looks for ports that have become free. A lease that is lost does no harm by itself: nodes that
// have sessions with each other keep them.
func (m *members) renew(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		m.renewNow(ctx)
		m.far.retry()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *members) renewNow(ctx context.Context) {
	wait := renewTime
	if m.relay.roster.Closed() {
		wait = leaveTime
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := m.relay.store.Nodes.Renew(ctx, m.now()); err != nil && ctx.Err() == nil {
		m.relay.log.Warn("this node's lease was not renewed", "error", err)
	} else if err == nil {
		m.listed.Store(true)
		m.renewed.Store(int64(monotime.Now()))
	}
}

// sure reports whether this node hears of what others write. One that is cut off
// may not know a client that was just added, or its new token.
func (m *members) sure() bool {
	return m.relay.store.Connected() && monotime.Now()-time.Duration(m.renewed.Load()) < sureTime
}

const doubleNode = "another relay has this node's id, from a copy of the data folder; stop one of the two, remove " + datadir.NodeFile +
	" from its data folder, and start it again"

// alone logs an error if another relay goes by this node's id: each then takes
// the other's entry for its own, and visitors of one never reach agents of the
// other.
func (m *members) alone(own store.Node) {
	if own.Boot == m.self.Boot || own.Boot == m.double {
		return
	}
	m.double = own.Boot
	m.relay.log.Error(doubleNode,
		"node", own.Name, "node_address", own.NodeAddress, "file", filepath.Join(m.relay.cfg.DataDir, datadir.NodeFile))
}

// now is this node with its figures.
func (m *members) now() store.Node {
	r := m.relay
	v := m.self
	v.Draining, v.Sessions = r.roster.Closed(), r.roster.Len()
	for _, s := range r.roster.All() {
		s.mu.Lock()
		v.Endpoints += len(s.tunnels)
		s.mu.Unlock()
	}
	for _, n := range r.edge.Visitors() {
		v.Visitors += n
	}
	return v
}

func (m *members) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := m.relay.store.Nodes.Leave(ctx, m.relay.id); err != nil {
		m.relay.log.Info("this node's lease was left to end by itself", "error", err)
	}
}

// look takes the list of nodes in, and tells agents if it is another.
func (m *members) look() {
	r := m.relay
	peers := m.mesh.Peers()
	told, own := m.listed.Load(), m.self // what is read after it is this node's entry, or came after that
	var list []nodes.Node
	m.mu.Lock()
	listed := map[string]bool{}
	for _, n := range r.store.Nodes.List() {
		if n.ID == r.id {
			own = n
			continue
		}
		listed[n.ID] = true
		m.known[n.ID] = n
		list = append(list, nodes.Node{ID: n.ID, Address: n.NodeAddress})
	}
	for id := range m.known {
		if !listed[id] && !peers[id].Connected {
			delete(m.known, id)
		}
	}
	m.mu.Unlock()
	if told {
		m.alone(own)
	}
	m.mesh.Know(list)
	var ids []string
	for _, n := range m.others() {
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
	r.log.Info("the relay's other nodes", "nodes", now)
	for _, s := range r.roster.All() {
		s.tell(wire.Event{Type: wire.EventNodes, Nodes: m.forAgent()})
	}
}

// others are the nodes that answer this one and do not end, by id.
func (m *members) others() []store.Node {
	peers := m.mesh.Peers()
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

// forAgent is the list of all nodes as an agent should try them: by chance, and
// those with less to do more likely first, so that agents spread.
func (m *members) forAgent() []wire.Node {
	list := m.others()
	if len(list) == 0 {
		return nil
	}
	weight := make(map[string]float64, len(list))
	for _, n := range list {
		weight[n.ID] = mathrand.ExpFloat64() * float64(n.Sessions+1)
	}
	slices.SortFunc(list, func(a, b store.Node) int { return cmp.Compare(weight[a.ID], weight[b.ID]) })
	out := make([]wire.Node, 0, len(list)+1)
	for _, n := range list {
		out = append(out, wire.Node{ID: n.ID, Address: n.AgentAddress})
	}
	if m.relay.roster.Closed() {
		return out
	}
	return append(out, wire.Node{ID: m.relay.id, Address: m.self.AgentAddress})
}

// addresses are those of the nodes, for agents that know no nodes.
func addresses(list []wire.Node) []string {
	var out []string
	for _, n := range list {
		if !slices.Contains(out, n.Address) {
			out = append(out, n.Address)
		}
	}
	return out
}

// whole reports whether this node knows what all others have: then what nobody
// has is nowhere.
func (m *members) whole() bool {
	peers := m.mesh.Peers()
	for _, n := range m.relay.store.Nodes.List() {
		if n.ID != m.relay.id && !peers[n.ID].Connected {
			return false
		}
	}
	return m.relay.store.Connected()
}

package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/far"
	"adit/tunnel/relay/membership"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/table"
	"adit/tunnel/wire"
)

// openNodes makes the node known to itself, and where the store is shared opens
// what it needs for the others.
func (r *Relay) openNodes() error {
	var err error
	if r.id, err = datadir.NodeID(r.cfg.DataDir); err != nil {
		return err
	}
	r.far = far.New(far.Config{
		Edge: r.edge, Claims: r.store.Claims, Roster: &r.roster, Account: r.accounts.Of, Told: r.store.Told, Log: r.log,
		Draining: func(node string) bool { return r.mesh.Peers()[node].Draining }, Changed: func() { r.members.Look() },
		Policies: r.store.Policies, Learn: r.learnPolicy, Came: r.cameElsewhere,
	})
	if r.store.Nodes == nil {
		return nil
	}
	ln, err := listen("nodes.listen", r.cfg.Nodes.Listen)
	if err != nil {
		return err
	}
	shown := daily{issue: func() (tls.Certificate, error) { return r.authority.IssueNode(r.id) }}
	r.mesh, err = nodes.New(nodes.Config{
		ID: r.id, Fingerprint: r.authority.Fingerprint(), Certificate: shown.get,
		Listener: ln, Local: local{r}, Far: r.far, Memory: r.waiting, Log: r.log,
	})
	if err != nil {
		ln.Close()
		return fmt.Errorf("nodes.listen: %w", err)
	}
	self := r.thisNode()
	var boot [8]byte
	rand.Read(boot[:])
	self.Boot, self.NodeAddress = hex.EncodeToString(boot[:]), r.cfg.Nodes.Address
	if self.NodeAddress == "" {
		host, _, _ := net.SplitHostPort(r.cfg.Nodes.Listen)
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = r.store.Nodes.LocalHost()
		}
		self.NodeAddress = net.JoinHostPort(host, strconv.Itoa(portOf(ln.Addr())))
	}
	r.members = membership.New(membership.Config{
		Node: self, Self: func() store.Node { return r.withFigures(self) }, Draining: r.roster.Closed,
		Store: r.store.Nodes, Connected: r.store.Connected, Mesh: r.mesh, Changed: r.tellNodes, Double: r.tellDouble, Log: r.log,
	})
	r.store.Claims.OnChange(func(target string) { r.task(func() { r.far.Review(target) }) })
	r.store.OnWrite(func(c table.Change) {
		if line, err := json.Marshal(c); err == nil {
			r.mesh.Tell(line)
		}
	})
	return nil
}

// learnTime is how long a policy may take to be read that another node knows.
const learnTime = 5 * time.Second

// learnPolicy reads what was written of policies up to a revision, and looks at the tunnels
// of a target then, which other nodes serve under it.
func (r *Relay) learnPolicy(target string, rev uint64) {
	r.task(func() {
		ctx, cancel := context.WithTimeout(context.Background(), learnTime)
		defer cancel()
		if err := r.store.Policies.CatchUp(ctx, rev); err != nil {
			r.log.Debug("a policy that another node knows cannot be read yet", "target", target, "error", err)
			return // far tries again
		}
		if r.store.Policies.Knows(target, r.store.ID(), rev) { // else the store has lost it, and far tries again
			r.far.Review(target)
		}
	})
}

// thisNode is this node but for its figures, and for what only those of several have.
func (r *Relay) thisNode() store.Node {
	return store.Node{
		ID: r.id, Name: r.node, Version: r.opts.Version, Started: r.started.UTC(),
		AgentAddress: cmp.Or(r.cfg.Nodes.AgentAddress, r.tunnelAddr()),
	}
}

// withFigures is this node with how much it does now.
func (r *Relay) withFigures(v store.Node) store.Node {
	v.Draining, v.Sessions = r.roster.Closed(), r.roster.Len()
	for _, s := range r.roster.All() {
		s.mu.Lock()
		v.Endpoints += len(s.tunnels)
		s.mu.Unlock()
	}
	v.Visitors = r.visitors()
	return v
}

// visitors is how many are served now.
func (r *Relay) visitors() (count int64) {
	for _, n := range r.edge.Visitors() {
		count += n
	}
	return count
}

// runNodes keeps what this node has with the others, until ctx ends.
func (r *Relay) runNodes(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.mesh.Run(ctx) })
	wg.Go(func() { r.rebalance(ctx) })
	wg.Go(func() { r.bound(ctx) })
	wg.Go(func() { r.far.Run(ctx) })
	r.members.Run(ctx)
	wg.Wait()
}

// tellNodes tells agents of the nodes.
func (r *Relay) tellNodes() {
	for _, s := range r.roster.All() {
		s.tell(wire.Event{Type: wire.EventNodes, Nodes: r.members.ForAgent()})
	}
}

const doubleNode = "another relay has this node's id, from a copy of the data folder; stop one of the two, remove " + datadir.NodeFile +
	" from its data folder, and start it again"

func (r *Relay) tellDouble(n store.Node) {
	r.log.Error(doubleNode,
		"node", n.Name, "node_address", n.NodeAddress, "file", filepath.Join(r.cfg.DataDir, datadir.NodeFile))
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

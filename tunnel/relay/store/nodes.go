package store

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/table"
)

// NodeLease is how long a node remains listed after it last renewed its entry.
const NodeLease = 15 * time.Second

// Node is what a relay node tells the others about itself.
type Node struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Boot    string    `json:"boot"` // random, once per start
	Started time.Time `json:"started"`
	// AgentAddress is where agents reach this node, and NodeAddress where other nodes do; both
	// are host:port.
	AgentAddress string `json:"agent_address"`
	NodeAddress  string `json:"node_address"`
	Draining     bool   `json:"draining,omitempty"`

	Sessions  int   `json:"sessions"`
	Endpoints int   `json:"endpoints"` // served by the node's own sessions
	Visitors  int64 `json:"visitors"`  // open now
}

// Nodes is the list of the relay's nodes. Each node keeps its own entry alive.
type Nodes struct {
	table     *table.Table[Node]
	conn      *nats.Conn
	announced announced
}

// openNodes returns the nodes in a table together with those that announce themselves over
// conn.
func openNodes(t *table.Table[Node], conn *nats.Conn) (*Nodes, error) {
	n := &Nodes{table: t, conn: conn}
	t.OnChange(func(id string, _ Node, exists bool) {
		if exists {
			n.announced.drop(id)
		}
	})
	return n, n.announced.listen(conn)
}

// Renew writes a node's entry, which lasts for NodeLease. If there is no room for it, Renew
// announces the node to those that listen.
func (n *Nodes) Renew(ctx context.Context, v Node) error {
	if err := n.table.PutFor(ctx, v.ID, v, NodeLease); err != nil {
		if bucket.IsFull(err) {
			announce(n.conn, v)
		}
		return fmt.Errorf("store node: %w", err)
	}
	return nil
}

// Leave removes a node's entry.
func (n *Nodes) Leave(ctx context.Context, id string) error {
	_, rev, ok := n.table.Get(id)
	if !ok {
		return nil
	}
	return n.table.Remove(ctx, id, rev)
}

// List returns the nodes by id.
func (n *Nodes) List() []Node {
	return slices.SortedFunc(maps.Values(n.byID()), func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
}

func (n *Nodes) byID() map[string]Node {
	all := make(map[string]Node)
	n.table.Each(func(id string, v Node) bool { all[id] = v; return true })
	n.announced.over(all)
	return all
}

// Get returns one node.
func (n *Nodes) Get(id string) (Node, bool) {
	v, ok := n.byID()[id]
	return v, ok
}

// OnChange calls f after every change. f must not block.
func (n *Nodes) OnChange(f func()) {
	n.table.OnChange(func(string, Node, bool) { f() })
	n.announced.onChange(f)
}

// LocalHost returns the address from which this node reaches the cluster. Other nodes can
// probably reach this node there.
func (n *Nodes) LocalHost() string {
	host, _, err := net.SplitHostPort(n.conn.LocalAddr())
	if err != nil {
		return ""
	}
	return host
}

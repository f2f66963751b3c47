package relay

import (
	"cmp"
	"slices"

	"adit/internal/monotime"
	"adit/internal/natural"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store"
)

// NodeList returns the relay's nodes, this one among them, by name.
func (o operator) NodeList() []console.Node {
	m := o.members
	if m == nil {
		alone := members{relay: o.Relay, self: store.Node{
			ID: o.id, Name: o.node, Version: o.opts.Version, Started: monotime.Wall(o.started), AgentAddress: o.tunnelAddr(),
		}}
		n := shownNode(alone.now())
		n.Self, n.Reachable = true, true
		return []console.Node{n}
	}
	self := shownNode(m.now())
	self.Self, self.Reachable = true, true
	list := []console.Node{self}
	peers := m.mesh.Peers()
	m.mu.Lock()
	for id, v := range m.known {
		n, p := shownNode(v), peers[id]
		n.Reachable, n.Draining = p.Connected, n.Draining || p.Draining
		n.RTT = float64(p.RTT.Microseconds()) / 1000
		list = append(list, n)
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b console.Node) int { return cmp.Or(natural.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list
}

func shownNode(v store.Node) console.Node {
	return console.Node{
		ID: v.ID, Name: v.Name, Version: v.Version, StartedAt: v.Started, AgentAddress: v.AgentAddress, NodeAddress: v.NodeAddress,
		Draining: v.Draining, Sessions: v.Sessions, Endpoints: v.Endpoints, Visitors: v.Visitors,
	}
}

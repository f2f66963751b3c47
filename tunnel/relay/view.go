package relay

import (
	"cmp"
	"iter"
	"slices"

	"adit/internal/monotime"
	"adit/internal/natural"
	"adit/tunnel/link"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/operator"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/store"
)

// view is the relay as its operator may see it.
type view struct{ *Relay }

// State reports whether the relay is ending, and how many agents are connected here.
func (r view) State() (draining bool, sessions int) {
	return r.roster.Closed(), r.roster.Len()
}

// CutOff reports whether other nodes may be making changes that this one does not hear
// of.
func (r view) CutOff() bool { return r.members != nil && r.members.CutOff() }

// SessionList returns the sessions of agents connected here, oldest first.
func (r view) SessionList() []console.Session {
	list := []console.Session{}
	for _, s := range r.roster.All() {
		stats := s.link.Stats()
		s.mu.Lock()
		v := console.Session{
			ID: s.id, Client: s.client.Name, ClientID: s.client.ID, Instance: s.hello.Instance,
			Address: s.link.RemoteAddr().String(), Transport: string(s.link.Transport()),
			Version: s.hello.Version, OS: s.hello.OS, Arch: s.hello.Arch, Hostname: s.hello.Hostname, Since: monotime.Wall(s.since),
			RTT: float64(stats.RTT.Microseconds()) / 1000, Tunnels: len(s.tunnels),
			BytesSent: stats.BytesSent, BytesReceived: stats.BytesReceived, Errors: slices.Clone(s.errors),
		}
		s.mu.Unlock()
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b console.Session) int { return a.Since.Compare(b.Since) })
	return list
}

// sessionsByTransport counts the agents connected here.
func (r *Relay) sessionsByTransport() map[link.Transport]int {
	by := make(map[link.Transport]int)
	for _, s := range r.roster.All() {
		by[s.link.Transport()]++
	}
	return by
}

// Connected returns what is connected for every client. It visits each session once,
// however many clients there are.
func (r view) Connected() map[string]operator.Connected {
	type clientTunnel struct {
		of  roster.Agent
		key string
	}
	all, known := make(map[string]operator.Connected), make(map[clientTunnel]bool)
	newest := make(map[string]*session) // of those here
	add := func(client string, see func(*operator.Connected)) {
		c := all[client]
		c.Sessions++
		see(&c)
		all[client] = c
	}
	// A tunnel may run over several sessions.
	count := func(c *operator.Connected, t clientTunnel) {
		if !known[t] {
			known[t] = true
			c.Tunnels++
		}
	}
	r.far.Each(func(of roster.Agent, tunnels iter.Seq2[string, routing.Face]) {
		add(of.Client, func(c *operator.Connected) {
			for key := range tunnels {
				count(c, clientTunnel{of, key})
			}
		})
	})
	for _, s := range r.roster.All() {
		add(s.client.ID, func(c *operator.Connected) {
			if was := newest[s.client.ID]; was == nil || s.since.After(was.since) {
				newest[s.client.ID] = s
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for key := range s.tunnels {
				count(c, clientTunnel{roster.Agent{Client: s.client.ID, Instance: s.hello.Instance}, key})
			}
		})
	}
	for client, s := range newest {
		c, seen := all[client], s.sighting(true)
		c.Newest = &seen
		all[client] = c
	}
	return all
}

// NodeList returns the relay's nodes, including this one, by name.
func (r view) NodeList() []console.Node {
	now := r.withFigures(r.thisNode())
	if r.members != nil {
		now = r.members.Self()
	}
	self := shownNode(now)
	self.Self, self.Reachable, self.StartedAt = true, true, monotime.Wall(r.started)
	list := []console.Node{self}
	if r.members == nil {
		return list
	}
	peers := r.mesh.Peers()
	for id, v := range r.members.Known() {
		n, p := shownNode(v), peers[id]
		n.Reachable, n.Draining = p.Connected, n.Draining || p.Draining
		n.RTT = float64(p.RTT.Microseconds()) / 1000
		list = append(list, n)
	}
	for _, v := range r.members.Missed() {
		n, since := shownNode(v.Node), monotime.Wall(v.Since)
		n.LostAt, n.Sessions, n.Endpoints, n.Visitors = &since, 0, 0, 0
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b console.Node) int { return cmp.Or(natural.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list
}

func shownNode(v store.Node) console.Node {
	return console.Node{
		ID: v.ID, Name: v.Name, Version: v.Version, StartedAt: v.Started, AgentAddress: v.AgentAddress, NodeAddress: v.NodeAddress,
		Draining: v.Draining, Sessions: v.Sessions, Endpoints: v.Endpoints, Visitors: v.Visitors,
	}
}

package relay

// connected is what of a client's agents is connected, to any node.
type connected struct {
	sessions, tunnels int
	newest            *session // of those here; nil: there is none
}

// connectedOf looks at the agents of all clients at once: each session is looked
// at once, however many clients there are.
func (r *Relay) connectedOf() map[string]connected {
	type clientTunnel struct{ client, instance, key string }
	all, known := make(map[string]connected), make(map[clientTunnel]bool)
	add := func(client string, see func(*connected)) {
		c := all[client]
		c.sessions++
		see(&c)
		all[client] = c
	}
	// A tunnel may run by way of several sessions.
	count := func(c *connected, t clientTunnel) {
		if !known[t] {
			known[t] = true
			c.tunnels++
		}
	}
	if r.members != nil {
		r.members.far.each(func(a *farAgent) {
			add(a.agent.ClientID, func(c *connected) {
				for key := range a.tunnels {
					count(c, clientTunnel{a.agent.ClientID, a.agent.Instance, key})
				}
			})
		})
	}
	for _, s := range r.sessionList() {
		add(s.client.ID, func(c *connected) {
			if c.newest == nil || s.since.After(c.newest.since) {
				c.newest = s
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for key := range s.tunnels {
				count(c, clientTunnel{s.client.ID, s.hello.Instance, key})
			}
		})
	}
	return all
}

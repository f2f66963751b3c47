package relay

import (
	"iter"
	"time"

	"adit/tunnel/relay/alerts"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/sink"
)

// attendance lists the clients that may have agents, and whether each has one.
func (r *Relay) attendance() []alerts.Client {
	connected := make(map[string]bool)
	r.far.Each(func(of roster.Agent, _ iter.Seq2[string, routing.Face]) { connected[of.Client] = true })
	for _, s := range r.roster.All() {
		connected[s.client.ID] = true
	}
	now := time.Now()
	var list []alerts.Client
	for _, c := range r.store.Clients.List() {
		if !c.Active() || c.Expired(now) {
			continue
		}
		a, _ := r.store.Activities.Get(c.ID)
		list = append(list, alerts.Client{
			ID: c.ID, Name: c.Name, Connected: connected[c.ID], Seen: a.Seen.At, SeenThere: a.Seen.Connected,
		})
	}
	return list
}

// tellsOfClients reports whether this node is the one that sends news of clients: the
// first of the nodes that are not shutting down.
func (r *Relay) tellsOfClients() bool {
	if r.roster.Closed() {
		return false // all agents are leaving, which does not make them away
	}
	if r.members == nil {
		return true
	}
	others := r.members.Others()
	return len(others) == 0 || r.id < others[0].ID
}

// tellOfClient passes a client's news to the sinks. If the client is away because its
// agent's node was lost, or because the agent left two nodes at the same time, the store
// still says that it is connected. That is corrected here.
func (r *Relay) tellOfClient(c sink.Client) {
	r.sinks.Client(c)
	if a, ok := r.store.Activities.Get(c.ClientID); ok && c.State == sink.Away && a.Seen.Connected {
		a.Seen.Connected = false
		if c.Since != nil && c.Since.After(a.Seen.At) {
			a.Seen.At = *c.Since
		}
		r.notes.Saw(c.ClientID, a.Seen)
	}
}

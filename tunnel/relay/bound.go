package relay

import (
	"context"
	"time"
)

// boundTurn is how often a node looks whether its clients have more tunnels than they
// may have at once.
const boundTurn = 5 * time.Second

// bound holds clients to how many tunnels they may have at once, until ctx ends: agents
// that come to several nodes at the same moment are counted by each without the others.
func (r *Relay) bound(ctx context.Context) {
	tick := time.NewTicker(boundTurn)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.boundClients()
		case <-ctx.Done():
			return
		}
	}
}

// boundClients takes away what the clients of sessions here have too much. The other
// nodes do the same with theirs, and all go by one order; see surplus.
func (r *Relay) boundClients() {
	looked := make(map[string]bool) // whether a client has too many
	for _, s := range r.roster.All() {
		id := s.client.ID
		scope := s.scope()
		if scope.Tunnels <= 0 {
			continue
		}
		over, known := looked[id]
		if !known {
			over = len(r.tunnelsOf(id)) > scope.Tunnels
			looked[id] = over
		}
		if over {
			s.refit(scope)
		}
	}
}

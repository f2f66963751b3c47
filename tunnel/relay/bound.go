package relay

import (
	"context"
	"time"
)

// boundTurn is how often a node checks whether its clients run more tunnels than they
// may.
const boundTurn = 5 * time.Second

// bound enforces the limit on clients' running tunnels until ctx ends. The limit may be
// exceeded when agents come to several nodes at the same moment, as each node counts
// without the others.
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

// boundClients takes down the surplus tunnels of the clients with sessions here. The
// other nodes do the same with theirs, and all nodes use the same order; see surplus.
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

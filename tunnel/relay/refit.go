package relay

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// refit takes down a session's tunnels that its client may no longer have. If there are
// too many, those whose names and ports were claimed last go first.
func (s *session) refit(scope scope.Scope) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	s.mu.Lock()
	faces := make(map[string]routing.Face, len(s.tunnels))
	for key, t := range s.tunnels {
		faces[key] = t.face
	}
	s.mu.Unlock()
	surplus := s.relay.surplus(s.client.ID, scope)
	for key, face := range faces {
		err := s.relay.fits(scope, face)
		if err == nil && surplus[tunnelID{s.hello.Instance, key}] {
			err = wire.Forbidden("", "the relay's operator limits the tunnels that this client has at the same time to %d; stop another first, or ask the operator for more", scope.Tunnels)
		}
		if err == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		if err := s.release(ctx, key, given); err != nil {
			s.relay.log.Warn("take a tunnel away", "client", s.client.Name, "key", key, "error", err)
		}
		cancel()
		s.tell(wire.Event{Type: wire.EventClaimLost, Key: key, Reason: err.Error()})
	}
}

// surplus returns the tunnels of a client that exceed the limit of a scope. Each session
// takes down its own, at its node, at the same time as the others. So the choice depends
// on something that all nodes share, the order of claims, and not on how many tunnels are
// left at that moment.
func (r *Relay) surplus(clientID string, scope scope.Scope) map[tunnelID]bool {
	if scope.Tunnels <= 0 {
		return nil
	}
	fit := make(map[tunnelID]bool) // the others go in any case
	r.far.Each(func(of roster.Agent, tunnels iter.Seq2[string, routing.Face]) {
		if of.Client != clientID {
			return
		}
		for key, face := range tunnels {
			if r.fits(scope, face) == nil {
				fit[tunnelID{of.Instance, key}] = true
			}
		}
	})
	for _, s := range r.roster.OfClient(clientID) {
		s.mu.Lock()
		for key, t := range s.tunnels {
			if r.fits(scope, t.face) == nil {
				fit[tunnelID{s.hello.Instance, key}] = true
			}
		}
		s.mu.Unlock()
	}
	if len(fit) <= scope.Tunnels {
		return nil
	}
	list := r.store.Claims.OfClient(clientID)
	slices.SortStableFunc(list, func(a, b claims.Claim) int { return a.Created.Compare(b.Created) })
	ranks := make(map[tunnelID]int, len(fit))
	for _, c := range list {
		for _, h := range c.Holders {
			if id := (tunnelID{h.Instance, h.Key}); fit[id] && ranks[id] == 0 {
				ranks[id] = len(ranks) + 1
			}
		}
	}
	order := make([]tunnelID, 0, len(fit))
	for id := range fit {
		if ranks[id] == 0 { // a claim that this node has not heard of yet
			ranks[id] = len(fit) + 1
		}
		order = append(order, id)
	}
	slices.SortFunc(order, func(a, b tunnelID) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(a.instance, b.instance), cmp.Compare(a.key, b.key))
	})
	surplus := make(map[tunnelID]bool)
	for _, id := range order[scope.Tunnels:] {
		surplus[id] = true
	}
	return surplus
}

package relay

import (
	"context"
	"errors"
	"time"

	"adit/tunnel/relay/store"
)

const (
	// keepRevoked is how long the relay keeps what a revoked client moved, where it
	// was seen and what it reported, for the operator to look at.
	keepRevoked = 31 * 24 * time.Hour
	// keepUnknown is the same for an id that no client has. It is not zero, since a
	// node may hear of what a new client does before it hears of the client.
	keepUnknown = 10 * time.Minute
)

// forgetting removes what is kept of clients that are no longer.
type forgetting struct {
	unknown map[string]time.Time // since when nobody has this id
	orphans map[string]time.Time // the same of those that have names or ports
}

// turn looks at all that is kept of clients, at a time. Every node does; what
// another has removed meanwhile is no error.
func (f *forgetting) turn(ctx context.Context, r *Relay, now time.Time) {
	clients := make(map[string]store.Client)
	for _, c := range r.store.Clients.List() {
		clients[c.ID] = c
	}
	unknown := make(map[string]time.Time)
	for _, id := range r.store.Kept() {
		if c, ok := clients[id]; ok {
			if c.Active() || now.Sub(c.Revoked) < keepRevoked {
				continue
			}
		} else {
			since, known := f.unknown[id]
			if !known {
				since = now
			}
			if now.Sub(since) < keepUnknown {
				unknown[id] = since
				continue
			}
		}
		if err := r.store.Forget(ctx, id); err != nil {
			if ctx.Err() == nil {
				r.log.Warn("remove what is kept of a client that is no longer", "client_id", id, "error", err)
			}
			continue
		}
		r.accounts.Forget(id)
		r.trail.forget(id)
	}
	f.unknown = unknown
	f.giveBack(ctx, r, clients, now)
}

// giveBack releases names and ports of clients that are no longer. Revoking does
// that itself, but a claim that another node was just making comes after it, and
// a node may end before it is done: nobody could have such a name again.
func (f *forgetting) giveBack(ctx context.Context, r *Relay, clients map[string]store.Client, now time.Time) {
	orphans := make(map[string]time.Time)
	owners := make(map[string]bool)
	for _, c := range r.store.Claims.All() {
		owners[c.ClientID] = true
	}
	for id := range owners {
		c, known := clients[id]
		if known && c.Active() {
			continue
		}
		if !known {
			since, before := f.orphans[id]
			if !before {
				since = now
			}
			if now.Sub(since) < keepUnknown {
				orphans[id] = since
				continue
			}
		}
		err := errors.Join(r.store.Claims.ReleaseClient(ctx, id), r.store.Policies.DropClient(ctx, id))
		if err != nil && ctx.Err() == nil {
			r.log.Warn("give back the names of a client that is no longer", "client_id", id, "error", err)
		}
	}
	f.orphans = orphans
}

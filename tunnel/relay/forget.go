package relay

import (
	"context"
	"errors"
	"time"

	"adit/tunnel/relay/store"
)

const (
	// keepRevoked is how long the relay keeps a revoked client's traffic, sightings and
	// reports for the operator to look at.
	keepRevoked = 31 * 24 * time.Hour
	// keepUnknown is the same for an id that no client has. It is not zero, since a node
	// may hear about a new client's activity before it hears about the client.
	keepUnknown = 10 * time.Minute
)

// forgetting removes what is stored about clients that no longer exist.
type forgetting struct {
	unknown map[string]time.Time // since when no client has had this id
	orphans map[string]time.Time // the same for ids that have names or ports
}

// turn checks everything that is stored about clients. Every node does this; it is no
// error if another node has already removed something.
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

// giveBack releases the names and ports of clients that no longer exist. Revoking a
// client does so itself, but a claim that another node is just making arrives after it,
// and a node may end before it is done. Without this, nobody could ever have such a name
// again.
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

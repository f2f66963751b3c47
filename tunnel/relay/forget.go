package relay

import (
	"context"
	"time"

	"adit/tunnel/relay/store"
)

const (
	// keepRevoked is how long the relay keeps what a revoked client moved, where it
	// was seen and what it reported, for the operator to look at.
	keepRevoked = 31 * 24 * time.Hour
	// keepUnknown is the same of a client whose name is another's by now. It is not
	// nothing: word of a new client may come later than of what it does.
	keepUnknown = 10 * time.Minute
)

// forgetting removes what is kept of clients that are no longer.
type forgetting struct {
	unknown map[string]time.Time // since when nobody has this id
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
		r.accounts.forget(id)
	}
	f.unknown = unknown
}

// forget drops the account of a client that is no longer.
func (a *accounts) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byClient, id)
}

// Package clients adds clients, gives them new auth tokens and revokes them. Whoever owns
// the sessions decides which of them end as a result.
package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// Registry manages a relay's clients.
type Registry struct {
	Store *store.Store
	// Mint returns a new auth token, which contains the relay's address.
	Mint func() wire.Token
}

// Add creates a client that may have what scope allows, or everything if scope is the
// zero value. It returns the client and its token, which is shown only once. Its errors
// are *scope.Error, bucket.ErrExists, store.ErrName, and the store's.
func (r Registry) Add(ctx context.Context, name string, scope scope.Scope) (store.Client, wire.Token, error) {
	if err := scope.Check(); err != nil {
		return store.Client{}, wire.Token{}, err
	}
	token := r.Mint()
	c, err := r.Store.Clients.AddWith(ctx, name, token.Secret, token.Hint(), scope)
	if errors.Is(err, bucket.ErrExists) {
		err = fmt.Errorf("there is a client %s already: %w", name, err)
	}
	return c, token, err
}

// Rotate gives a client a new token. The old one works for another overlap.
func (r Registry) Rotate(ctx context.Context, name string, overlap time.Duration) (store.Client, wire.Token, error) {
	token := r.Mint()
	c, err := r.Store.Clients.Rotate(ctx, name, token.Secret, token.Hint(), overlap)
	return c, token, err
}

// Revoke ends a client's right to connect, and gives its names and ports back. If the
// client is revoked, it is returned even with an error: perhaps not everything has been
// given back yet.
func (r Registry) Revoke(ctx context.Context, name string) (store.Client, error) {
	c, err := r.Store.Clients.Revoke(ctx, name)
	if err != nil {
		if now, ok := r.Store.Clients.Get(name); ok && now.ID == c.ID && !now.Active() {
			return now, err
		}
		return store.Client{}, err // as far as is known
	}
	return c, errors.Join(r.Store.Claims.ReleaseClient(ctx, c.ID), r.Store.Policies.DropClient(ctx, c.ID))
}

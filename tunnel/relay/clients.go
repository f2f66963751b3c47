package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

func (r *Relay) newToken() wire.Token {
	t := wire.Token{Relay: r.tunnelAddr(), Fingerprint: r.authority.Fingerprint()}
	rand.Read(t.Secret[:])
	return t
}

// AddClient makes a client and the token that is shown once.
func (r *Relay) AddClient(ctx context.Context, name string) (store.Client, wire.Token, error) {
	token := r.newToken()
	c, err := r.store.Clients.Add(ctx, name, token.Secret, token.Hint())
	if errors.Is(err, store.ErrExists) {
		err = fmt.Errorf("there is a client %s already: %w", name, err)
	}
	return c, token, err
}

// RotateClient gives a client a new token; the old one works for overlap more.
func (r *Relay) RotateClient(ctx context.Context, name string, overlap time.Duration) (store.Client, wire.Token, error) {
	token := r.newToken()
	c, err := r.store.Clients.Rotate(ctx, name, token.Secret, token.Hint(), overlap)
	return c, token, err
}

// RevokeClient takes a client's right to connect, ends its sessions and gives
// its names and ports back.
func (r *Relay) RevokeClient(ctx context.Context, name string) (store.Client, error) {
	c, err := r.store.Clients.Revoke(ctx, name)
	if err != nil {
		return c, err
	}
	return c, errors.Join(r.store.Claims.ReleaseClient(ctx, c.ID), r.store.Policies.DropClient(ctx, c.ID))
}

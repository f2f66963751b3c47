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

// AddClient makes a client that may have everything, and the token that is shown once.
func (r *Relay) AddClient(ctx context.Context, name string) (store.Client, wire.Token, error) {
	return r.addClient(ctx, name, store.Scope{})
}

// Scope is what a client may have.
type Scope = store.Scope

// AddScopedClient is AddClient with a scope.
func (r *Relay) AddScopedClient(ctx context.Context, name string, scope Scope) (store.Client, wire.Token, error) {
	if err := scope.Check(); err != nil {
		return store.Client{}, wire.Token{}, err
	}
	return r.addClient(ctx, name, scope)
}

func (r *Relay) addClient(ctx context.Context, name string, scope store.Scope) (store.Client, wire.Token, error) {
	token := r.newToken()
	c, err := r.store.Clients.AddWith(ctx, name, token.Secret, token.Hint(), scope)
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

// clientChanged holds a client's sessions to what the client is now: those of a
// revoked or expired one end, and tunnels outside of its scope are taken away.
func (r *Relay) clientChanged(c store.Client) {
	r.task(func() { r.accounts.Apply(c.ID) })
	r.endTrials(c)
	for _, s := range r.sessionList() {
		switch {
		case s.client.ID != c.ID:
			if s.client.Name == c.Name { // the name is a new client's
				r.dismiss(s, "the client was revoked", 0)
			}
		case !c.Active():
			r.dismiss(s, "the client was revoked", 0)
		case !r.lapsed(s, c, time.Now()):
			r.task(func() { s.refit(c.Scope) })
		}
	}
}

// lapsed ends a session whose client's time is over, or that of the token that it
// began with, and reports whether it does. A token that was replaced may be in other
// hands.
func (r *Relay) lapsed(s *session, c store.Client, now time.Time) bool {
	switch {
	case c.Expired(now):
		r.dismiss(s, expiredReason(c), expiredRetry)
	case !c.Takes(s.secret, now):
		r.dismiss(s, "the auth token was replaced by a newer one, and works no longer", 0)
	default:
		return false
	}
	return true
}

// expiredRetry is when agents of an expired client ask again, in seconds: its
// operator may have given it more time, and has no way to tell them.
const expiredRetry = 300

func expiredReason(c store.Client) string {
	return "the client's time ended on " + c.Scope.Expires.UTC().Format("2006-01-02 15:04 UTC")
}

// dismiss ends a session whose client may no longer connect, or not before
// retryAfter seconds if that is not 0.
func (r *Relay) dismiss(s *session, reason string, retryAfter int) {
	if s.gone.Swap(true) {
		return
	}
	s.tell(wire.Event{Type: wire.EventRevoked, Reason: reason, RetryAfter: retryAfter})
	r.task(func() {
		wait := time.NewTimer(100 * time.Millisecond) // for the event to be read
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-s.link.Done():
		}
		s.link.Close(reason)
	})
}

// watchExpiry ends the sessions of clients and tokens whose time is over.
func (r *Relay) watchExpiry(ctx context.Context) {
	tick := time.NewTicker(expiryCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, s := range r.sessionList() {
				if c, ok := r.store.Clients.Get(s.client.Name); ok && c.ID == s.client.ID && c.Active() {
					r.lapsed(s, c, now)
				}
			}
		}
	}
}

const expiryCheck = 500 * time.Millisecond

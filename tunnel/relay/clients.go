package relay

import (
	"context"
	"crypto/rand"
	"time"

	"adit/tunnel/relay/clients"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

func (r *Relay) newToken() wire.Token {
	t := wire.Token{Relay: r.tunnelAddr(), Fingerprint: r.authority.Fingerprint()}
	rand.Read(t.Secret[:])
	return t
}

// Scope is what a client may have.
type Scope = scope.Scope

// Clients returns the registry through which clients are added, rotated and revoked.
func (r *Relay) Clients() clients.Registry { return clients.Registry{Store: r.store, Mint: r.newToken} }

// clientChanged applies a change of a client to its sessions. Sessions of a revoked or
// expired client end, and tunnels outside the client's scope are taken down. The
// remaining sessions are told that they may again ask for what they were refused.
func (r *Relay) clientChanged(c store.Client) {
	r.task(func() { r.accounts.Apply(c.ID) })
	r.endTrials(c)
	for _, s := range r.roster.All() {
		switch {
		case s.client.ID != c.ID:
			if s.client.Name == c.Name { // the name now belongs to a new client
				r.dismiss(s, "the client was revoked", 0)
			}
		case !c.Active():
			r.dismiss(s, "the client was revoked", 0)
		case !r.lapsed(s, c, time.Now()):
			r.task(func() {
				s.refit(c.Scope)
				s.tell(wire.Event{Type: wire.EventScope})
			})
		}
	}
}

// lapsed ends a session if its client has expired, or if the token that it began with is
// no longer accepted, and reports whether it did. A replaced token may be in someone
// else's hands.
func (r *Relay) lapsed(s *session, c store.Client, now time.Time) bool {
	switch {
	case c.Expired(now):
		r.dismiss(s, expiredReason(c), expiredRetry)
	case !c.Takes(s.secret, now):
		r.dismiss(s, "the auth token was replaced by a newer one, and no longer works", 0)
	default:
		return false
	}
	return true
}

// expiredRetry is after how many seconds the agents of an expired client try again. Its
// operator may have extended the client's time, and has no other way to tell them.
const expiredRetry = 300

func expiredReason(c store.Client) string {
	return "the client's time ended on " + c.Scope.Expires.UTC().Format("2006-01-02 15:04 UTC")
}

// dismiss ends a session whose client may no longer connect, or only after retryAfter
// seconds if that is not 0.
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

// watchExpiry ends the sessions of clients and tokens that have expired.
func (r *Relay) watchExpiry(ctx context.Context) {
	tick := time.NewTicker(expiryCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, s := range r.roster.All() {
				if c, ok := r.store.Clients.Get(s.client.Name); ok && c.ID == s.client.ID && c.Active() {
					r.lapsed(s, c, now)
				}
			}
		}
	}
}

const expiryCheck = 500 * time.Millisecond

// mayBeBack reports whether a target belongs to a client whose agents are let in.
func (r *Relay) mayBeBack(target string) bool {
	claim, _ := r.store.Claims.Get(target)
	c, ok := r.store.Clients.ByID(claim.ClientID)
	return ok && c.Active() && !c.Expired(time.Now())
}

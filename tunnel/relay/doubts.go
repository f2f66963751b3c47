package relay

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"adit/tunnel/relay/store/claims"
)

// doubts holds claims that sessions here asked for and that the store did not confirm. A
// server that delays a write may still make it long after the tunnel has gone elsewhere,
// and then nobody else would give the name or port back.
type doubts struct {
	mu       sync.Mutex
	byTarget map[string]map[served]attempts
	of       map[*session]int // how many
}

// maxDoubts is how many doubted claims a session may have, since its agent can give up
// claims as fast as it makes them. A claim beyond that stays the client's until the
// tunnel's next claim.
const maxDoubts = 64

// attempts holds when a claim was first and last attempted. A claim in the store says
// when it was begun.
type attempts struct{ first, last time.Time }

func (a attempts) has(c claims.Claim) bool {
	at := c.Created.Round(0)
	return !at.Before(a.first) && !at.After(a.last)
}

func (d *doubts) add(c claims.Claim, of served) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byTarget == nil {
		d.byTarget, d.of = make(map[string]map[served]attempts), make(map[*session]int)
	}
	at := attempts{c.Created.Round(0), c.Created.Round(0)}
	if before, ok := d.byTarget[c.Target][of]; ok {
		at.first = before.first
	} else if d.of[of.session]++; d.of[of.session] > maxDoubts {
		d.of[of.session] = maxDoubts
		return
	}
	if d.byTarget[c.Target] == nil {
		d.byTarget[c.Target] = make(map[served]attempts)
	}
	d.byTarget[c.Target][of] = at
}

func (d *doubts) at(target string) map[served]attempts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.byTarget[target])
}

func (d *doubts) targets() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.byTarget))
}

// drop removes every doubt for which f returns true.
func (d *doubts) drop(f func(target string, of served) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for target, all := range d.byTarget {
		for of := range all {
			if f(target, of) {
				delete(all, of)
				if d.of[of.session]--; d.of[of.session] == 0 {
					delete(d.of, of.session)
				}
			}
		}
		if len(all) == 0 {
			delete(d.byTarget, target)
		}
	}
}

// undoDoubted gives back a target whose claim was made after all. It does not wait.
func (r *Relay) undoDoubted(target string) {
	for of, when := range r.doubts.at(target) {
		r.task(func() {
			ctx, cancel := context.WithTimeout(context.Background(), storeWait)
			defer cancel()
			of.session.undo(ctx, target, of.key, when)
		})
	}
}

// undo gives back a doubted claim if it was made, unless its tunnel has the target by
// now.
func (s *session) undo(ctx context.Context, target, key string, when attempts) {
	s.claiming.Lock() // waits for a claim in progress
	defer s.claiming.Unlock()
	s.mu.Lock()
	t, ended := s.tunnels[key], s.tunnels == nil
	s.mu.Unlock()
	if has := t != nil && t.face.Target == target; !has && !ended && !s.gone.Load() {
		c, ok := s.relay.store.Claims.Get(target)
		if !ok || c.ClientID != s.client.ID || !when.has(c) {
			return // the claim may still be made
		}
		if err := s.relay.store.Claims.Release(ctx, target, s.client.ID, s.hello.Instance, key); err != nil {
			s.relay.log.Warn("give back a claim", "target", target, "error", err)
			return // sweep tries again
		}
		s.relay.log.Info("a claim that the store made late is given back", "client", s.client.Name, "target", target)
	}
	s.relay.doubts.drop(func(of string, v served) bool { return of == target && v == served{s, key} })
}

package relay

import (
	"context"
	"sync"
	"time"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// serving holds the tunnels of the sessions here by the target of their claim. A claim
// may change hands at another node, for example while this node was cut off.
type serving struct {
	mu       sync.Mutex
	byTarget map[string]map[served]time.Time // since when the claim has been missing; zero if it is not
}

type served struct {
	session *session
	key     string
}

func (v *serving) add(target string, s *session, key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byTarget == nil {
		v.byTarget = make(map[string]map[served]time.Time)
	}
	if v.byTarget[target] == nil {
		v.byTarget[target] = make(map[served]time.Time)
	}
	v.byTarget[target][served{s, key}] = time.Time{}
}

func (v *serving) remove(target string, s *session, key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byTarget[target], served{s, key})
	if len(v.byTarget[target]) == 0 {
		delete(v.byTarget, target)
	}
}

func (v *serving) at(target string) []served {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := make([]served, 0, len(v.byTarget[target]))
	for t := range v.byTarget[target] {
		list = append(list, t)
	}
	return list
}

// missing records whether the claim of a target is missing, and returns since when.
func (v *serving) missing(target string, t served, is bool, now time.Time) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	since, ok := v.byTarget[target][t]
	switch {
	case !ok:
	case !is:
		v.byTarget[target][t] = time.Time{}
	case since.IsZero():
		v.byTarget[target][t] = now
		return now
	}
	return since
}

func (v *serving) targets() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := make([]string, 0, len(v.byTarget))
	for target := range v.byTarget {
		list = append(list, target)
	}
	return list
}

// lostTo reports whether a claim belongs to someone other than the tunnel that would
// serve it: to another client, or to another tunnel if only one may have it.
func lostTo(c claims.Claim, s *session, key string, slot string) bool {
	if c.ClientID != s.client.ID {
		return true
	}
	other := false
	for _, h := range c.Holders {
		switch {
		case h.Slot != slot:
		case h.Instance == s.hello.Instance && h.Key == key:
			return false
		case h.Mode != wire.ModeBalanced:
			other = true
		}
	}
	return other
}

// claimChanged makes the tunnels here give way if the target that they serve is now
// someone else's. It also makes visitors stop waiting for a target that nobody has any
// more. It does not wait.
func (r *Relay) claimChanged(target string) {
	r.task(func() {
		if !r.mayBeBack(target) {
			r.edge.GiveUp(target)
		}
	})
	for _, v := range r.serving.at(target) {
		r.task(func() { v.session.giveWay(target, v.key) })
	}
}

// giveWay takes down a tunnel whose claim is someone else's, and tells its agent.
func (s *session) giveWay(target, key string) {
	s.claiming.Lock() // waits for a claim in progress
	defer s.claiming.Unlock()
	s.mu.Lock()
	t := s.tunnels[key]
	s.mu.Unlock()
	c, ok := s.relay.store.Claims.Get(target)
	if t == nil || t.face.Target != target || !ok || !lostTo(c, s, key, t.face.Slot) {
		return
	}
	s.relay.log.Warn("a tunnel gives way: its name or port is another's by now", "client", s.client.Name, "key", key, "target", target)
	if err := s.release(context.Background(), key, kept); err != nil { // which does not involve the store
		s.relay.log.Warn("take a tunnel away", "client", s.client.Name, "key", key, "error", err)
	}
	s.tell(wire.Event{Type: wire.EventClaimLost, Key: key, Reason: faceName(t.face) + " now belongs to another client; choose another"})
}

// reclaim claims the targets of tunnels that run here without a claim. That happens if
// another node gave the claim back while this node was cut off and the agent seemed to be
// away. A tunnel that is just being taken down has one turn of sweep to finish.
func (r *Relay) reclaim(ctx context.Context, now time.Time) {
	for _, target := range r.serving.targets() {
		_, there := r.store.Claims.Get(target)
		for _, v := range r.serving.at(target) {
			since := r.serving.missing(target, v, !there, now)
			if !there && now.Sub(since) >= sweepTime/2 && v.session.link.Err() == nil && !v.session.gone.Load() {
				v.session.reclaim(ctx, target, v.key)
			}
		}
	}
}

func (s *session) reclaim(ctx context.Context, target, key string) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	s.mu.Lock()
	t := s.tunnels[key]
	s.mu.Unlock()
	if t == nil || t.face.Target != target {
		return
	}
	// Its policy may have been deleted with the claim; whoever takes the claim gets it
	// back.
	left, release := s.relay.policies.Hold(target)
	defer release()
	h := claims.Holder{Slot: t.face.Slot, Instance: s.hello.Instance, Key: key, Type: t.face.Type, Mode: t.face.Mode, Ephemeral: t.ephemeral}
	_, err := s.relay.store.Claims.Take(ctx, target, s.client.ID, h, s.relay.gone)
	if err == nil && left != nil && left.By == s.client.ID {
		err = s.relay.store.Policies.PutBack(ctx, *left)
	}
	s.relay.log.Warn("a tunnel ran without a claim", "client", s.client.Name, "target", target, "taken", err == nil, "error", err)
}

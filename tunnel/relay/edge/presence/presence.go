// Package presence knows the visits that an endpoint has now, and ends those that may no
// longer be: of whom a policy lets in no more, whom a private tunnel invites no more, or
// of whom no byte moves. Who that is, is for the caller to say.
package presence

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
)

// Set is the visits that an endpoint has now. The zero value has none.
type Set struct {
	mu  sync.Mutex
	all map[*Visit]struct{}
}

// Answer is what a visitor's request is answered by.
type Answer interface {
	Moved() int64 // bytes, in either direction
	GiveUp()      // ends what is being written, after a while
	Over()        // ends the power of GiveUp
}

// Visit is one visitor's request, connection or flow.
type Visit struct {
	of     *Set
	cancel context.CancelFunc
	answer Answer // of a request; nil for a connection, which looks after itself

	// Guarded by of.mu.
	guest   *policy.Guest  // nil: it is not let in yet
	private *visitor.Guest // of a private tunnel: who it is
	refused string         // the rule that has ended it; "": none has
	moved   int64          // bytes, when it was last looked at; -1: never
	since   time.Duration
}

// Enter notes a visitor, with the answer of a request; nil: it is a connection. The
// context ends when the visitor may no longer be.
func (p *Set) Enter(ctx context.Context, answer Answer) (context.Context, *Visit) {
	ctx, cancel := context.WithCancel(ctx)
	v := &Visit{of: p, cancel: cancel, answer: answer, moved: -1}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[*Visit]struct{})
	}
	p.all[v] = struct{}{}
	return ctx, v
}

// Remove forgets a visitor and reports whether none is left.
func (p *Set) Remove(v *Visit) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, v)
	return len(p.all) == 0
}

// End ends the visit. What is being written to a visitor who does not read is
// given up after a while.
func (v *Visit) End() {
	v.cancel()
	if v.answer != nil {
		v.answer.GiveUp()
	}
}

// Leave frees what a visit holds that has come to its end, and was removed.
func (v *Visit) Leave() {
	v.cancel()
	if v.answer != nil {
		v.answer.Over()
	}
}

// LetIn notes who was let in. A policy that was changed before that, and not
// heeded, is for the caller to ask.
func (v *Visit) LetIn(g policy.Guest) {
	g.Reading = new(policy.Reading) // it is asked for again as long as the visit lasts
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	v.guest = &g
}

// IsOf notes whose visit it is, of a private tunnel. An endpoint that did not invite
// the guest any more before that is for the caller to ask.
func (v *Visit) IsOf(g *visitor.Guest) {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	v.private = g
}

// Refused is the rule by which the visit was ended; "" if it was ended by none.
func (v *Visit) Refused() string {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	return v.refused
}

// Any reports whether there are visitors.
func (p *Set) Any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) > 0
}

// Presented returns what visitors have presented, each connection's once. To verify it
// takes a while, in which nobody is to be kept from coming.
func (p *Set) Presented() []*policy.Presented {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[*policy.Presented]struct{})
	for v := range p.all {
		if v.guest != nil && v.guest.Certificate != nil {
			all[v.guest.Certificate] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(all))
}

// EndIdle ends the requests of which no byte has moved for limit.
func (p *Set) EndIdle(now, limit time.Duration) {
	p.endEach(func(v *Visit) bool {
		if v.answer == nil {
			return false
		}
		if moved := v.answer.Moved(); moved != v.moved {
			v.moved, v.since = moved, now
		}
		return now-v.since >= limit
	})
}

// EndAll ends all visits, by a rule.
func (p *Set) EndAll(rule string) {
	p.endEach(func(v *Visit) bool {
		v.refused = rule
		return true
	})
}

// EndGuests ends the visits of those who were let in and may no longer stay. keeps
// must not wait.
func (p *Set) EndGuests(keeps func(policy.Guest) policy.Decision) {
	p.endEach(func(v *Visit) bool {
		if v.guest == nil {
			return false
		}
		d := keeps(*v.guest)
		if !d.Allowed {
			v.refused = d.Rule
		}
		return !d.Allowed
	})
}

// EndPrivate ends the visits of a private tunnel's guests who are picked.
func (p *Set) EndPrivate(pick func(visitor.Guest) bool) {
	p.endEach(func(v *Visit) bool { return v.private != nil && pick(*v.private) })
}

// endEach ends those that are picked.
func (p *Set) endEach(pick func(*Visit) bool) {
	p.mu.Lock()
	var ending []*Visit
	for v := range p.all {
		if pick(v) {
			ending = append(ending, v)
		}
	}
	p.mu.Unlock()
	for _, v := range ending {
		v.End()
	}
}

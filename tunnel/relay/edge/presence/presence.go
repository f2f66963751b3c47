// Package presence tracks the current visits of an endpoint and ends those that may not
// continue: visitors that a policy no longer admits, guests that a private tunnel no longer
// invites, and visits on which no byte moves. The caller decides which visits those are.
package presence

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
)

// Reasons for ending a visit here, other than a [RefusedError].
var (
	ErrStill   = errors.New("no byte has moved for too long")
	ErrTooMuch = errors.New("too much of it waits in memory")
)

// RefusedError is the reason for ending a visit whose visitor may no longer stay: a rule of
// the policy.
type RefusedError struct{ Rule string }

func (e RefusedError) Error() string { return "the visitor is let in no more: " + e.Rule }

// Set is the current visits of an endpoint. The zero value is empty.
type Set struct {
	mu  sync.Mutex
	all map[*Visit]struct{}
}

// Answer is the answer to a visitor's request.
type Answer interface {
	Moved() int64 // bytes, in either direction
	GiveUp()      // ends what is being written, after a delay
	Over()        // makes GiveUp harmless
}

// Visit is one visitor's request, connection or flow.
type Visit struct {
	of     *Set
	ctx    context.Context
	cancel context.CancelCauseFunc
	answer Answer // to a request; nil for a connection, which handles idleness itself

	// Guarded by of.mu.
	guest   *policy.Guest  // nil: not admitted yet
	private *visitor.Guest // who visits a private tunnel
	moved   int64          // bytes when last checked; -1: never checked
	since   time.Duration
}

// Enter adds a visitor, with the answer to its request, or nil for a connection. The context
// ends when the visitor may no longer stay.
func (p *Set) Enter(ctx context.Context, answer Answer) (context.Context, *Visit) {
	ctx, cancel := context.WithCancelCause(ctx)
	v := &Visit{of: p, ctx: ctx, cancel: cancel, answer: answer, moved: -1}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[*Visit]struct{})
	}
	p.all[v] = struct{}{}
	return ctx, v
}

// Remove removes a visitor and reports whether none is left.
func (p *Set) Remove(v *Visit) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, v)
	return len(p.all) == 0
}

// end ends the visit. Data being written to a visitor who does not read is abandoned after a
// delay.
func (v *Visit) end(why error) {
	v.cancel(why)
	if v.answer != nil {
		v.answer.GiveUp()
	}
}

// Leave releases what a visit holds. It is called once the visit has ended and been removed.
func (v *Visit) Leave() {
	v.cancel(nil)
	if v.answer != nil {
		v.answer.Over()
	}
}

// End ends a visit for which too much data waits in memory.
func (v *Visit) End() { v.end(ErrTooMuch) }

// Why returns what has ended the visit: a [RefusedError], [ErrStill] or [ErrTooMuch], or
// another error if it was not ended here. It is nil while the visit goes on.
func (v *Visit) Why() error { return context.Cause(v.ctx) }

// LetIn records who was admitted. The policy may have changed just before that without
// affecting this visit, so the caller must check again.
func (v *Visit) LetIn(g policy.Guest) {
	g.Reading = new(policy.Reading) // it is consulted again for as long as the visit lasts
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	v.guest = &g
}

// IsOf records who is visiting a private tunnel. The endpoint may have withdrawn the
// invitation just before that, so the caller must check again.
func (v *Visit) IsOf(g *visitor.Guest) {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	v.private = g
}

// Any reports whether there are visitors.
func (p *Set) Any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) > 0
}

// Presented returns what visitors have presented, once per connection. Verifying it takes a
// while and must not block new visitors, so it is left to the caller.
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

// EndIdle ends the requests on which no byte has moved for limit.
func (p *Set) EndIdle(now, limit time.Duration) {
	p.endEach(func(v *Visit) error {
		if v.answer == nil {
			return nil
		}
		if moved := v.answer.Moved(); moved != v.moved {
			v.moved, v.since = moved, now
		}
		if now-v.since < limit {
			return nil
		}
		return ErrStill
	})
}

// EndAll ends all visits because of a rule.
func (p *Set) EndAll(rule string) { p.endEach(func(*Visit) error { return RefusedError{rule} }) }

// EndGuests ends the visits of admitted guests whom judge no longer allows. judge must not
// block.
func (p *Set) EndGuests(judge func(policy.Guest) policy.Decision) {
	p.endEach(func(v *Visit) error {
		if v.guest == nil {
			return nil
		}
		if d := judge(*v.guest); !d.Allowed {
			return RefusedError{d.Rule}
		}
		return nil
	})
}

// EndPrivate ends the visits of a private tunnel's guests for whom pick returns true.
func (p *Set) EndPrivate(pick func(visitor.Guest) bool) {
	p.endEach(func(v *Visit) error {
		if v.private == nil || !pick(*v.private) {
			return nil
		}
		return RefusedError{policy.RuleVisitors}
	})
}

// endEach ends the visits for which reason returns an error.
func (p *Set) endEach(reason func(*Visit) error) {
	p.mu.Lock()
	ending := make(map[*Visit]error)
	for v := range p.all {
		if why := reason(v); why != nil {
			ending[v] = why
		}
	}
	p.mu.Unlock()
	for v, why := range ending {
		v.end(why)
	}
}

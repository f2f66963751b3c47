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

// Why a visit is ended here, and not by its visitor; or a [RefusedError].
var (
	ErrStill   = errors.New("no byte has moved for too long")
	ErrTooMuch = errors.New("too much of it waits in memory")
)

// RefusedError is why a visit is ended whose visitor may no longer be: a rule of the policy.
type RefusedError struct{ Rule string }

func (e RefusedError) Error() string { return "the visitor is let in no more: " + e.Rule }

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
	ctx    context.Context
	cancel context.CancelCauseFunc
	answer Answer // of a request; nil for a connection, which looks after itself

	// Guarded by of.mu.
	guest   *policy.Guest  // nil: it is not let in yet
	private *visitor.Guest // of a private tunnel: who it is
	moved   int64          // bytes, when it was last looked at; -1: never
	since   time.Duration
}

// Enter notes a visitor, with the answer of a request; nil: it is a connection. The
// context ends when the visitor may no longer be.
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

// Remove forgets a visitor and reports whether none is left.
func (p *Set) Remove(v *Visit) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, v)
	return len(p.all) == 0
}

// end ends the visit. What is being written to a visitor who does not read is
// given up after a while.
func (v *Visit) end(why error) {
	v.cancel(why)
	if v.answer != nil {
		v.answer.GiveUp()
	}
}

// Leave frees what a visit holds that has come to its end, and was removed.
func (v *Visit) Leave() {
	v.cancel(nil)
	if v.answer != nil {
		v.answer.Over()
	}
}

// End ends a visit of which too much waits in memory.
func (v *Visit) End() { v.end(ErrTooMuch) }

// Why is what has ended the visit: a [RefusedError], [ErrStill] or [ErrTooMuch]; another
// error if it was not ended here, and nil while it goes on.
func (v *Visit) Why() error { return context.Cause(v.ctx) }

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

// EndAll ends all visits, by a rule.
func (p *Set) EndAll(rule string) { p.endEach(func(*Visit) error { return RefusedError{rule} }) }

// EndGuests ends the visits of those who were let in and are judged otherwise now.
// judge must not wait.
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

// EndPrivate ends the visits of a private tunnel's guests who are picked.
func (p *Set) EndPrivate(pick func(visitor.Guest) bool) {
	p.endEach(func(v *Visit) error {
		if v.private == nil || !pick(*v.private) {
			return nil
		}
		return RefusedError{policy.RuleVisitors}
	})
}

// endEach ends those that there is a reason to.
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

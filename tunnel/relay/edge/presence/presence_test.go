package presence

import (
	"context"
	"errors"
	"testing"
	"time"

	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
)

// answer is one of which so many bytes have moved.
type answer struct {
	moved  int64
	gaveUp bool
	over   bool
}

func (a *answer) Moved() int64 { return a.moved }
func (a *answer) GiveUp()      { a.gaveUp = true }
func (a *answer) Over()        { a.over = true }

// TestGuestsAreRemembered checks that the way a guest's path is read is remembered for every
// visit that was admitted.
func TestGuestsAreRemembered(t *testing.T) {
	var here Set
	for _, of := range []Answer{nil, new(answer)} {
		_, v := here.Enter(t.Context(), of)
		v.LetIn(policy.Guest{Target: "/"})
		here.Remove(v)
		v.Leave()
		if v.guest.Reading == nil {
			t.Error("a guest is read anew each time")
		}
	}
}

func TestTheLastVisitIsTold(t *testing.T) {
	var here Set
	if here.Any() {
		t.Error("before: got visitors, want none")
	}
	request := new(answer)
	_, first := here.Enter(t.Context(), request)
	ctx, second := here.Enter(t.Context(), nil)
	if !here.Any() || here.Remove(second) || !here.Any() || !here.Remove(first) || here.Any() {
		t.Error("got another visit than the second to be the last")
	}
	first.Leave()
	second.Leave()
	if ctx.Err() == nil || !request.over || request.gaveUp {
		t.Errorf("what is left: got context %v, answer %+v, want an end to both and nothing given up", ctx.Err(), request)
	}
	here.EndAll("a rule")
	if errors.As(second.Why(), new(RefusedError)) || request.gaveUp {
		t.Errorf("a visit that has left was ended: %v, answer %+v", second.Why(), request)
	}
}

// TestOnlyThoseEndOfWhomThatIsMeant watches three visits: by a guest with a certificate, by a
// guest of a private tunnel, and by a visitor who has not been admitted yet.
func TestOnlyThoseEndOfWhomThatIsMeant(t *testing.T) {
	const guest, private = 0, 1
	tests := map[string]struct {
		end  func(*Set)
		want [3]error
	}{
		"all": {func(s *Set) { s.EndAll("drained") }, [3]error{RefusedError{"drained"}, RefusedError{"drained"}, RefusedError{"drained"}}},
		"guests who are judged otherwise": {func(s *Set) {
			s.EndGuests(func(g policy.Guest) policy.Decision {
				return policy.Decision{Allowed: g.Target != "/now-shut", Rule: "paths"}
			})
		}, [3]error{guest: RefusedError{"paths"}}},
		"guests who are judged alike": {func(s *Set) {
			s.EndGuests(func(policy.Guest) policy.Decision { return policy.Decision{Allowed: true} })
		}, [3]error{}},
		"guests who are invited no more": {func(s *Set) {
			s.EndPrivate(func(g visitor.Guest) bool { return g.Client == "ann" })
		}, [3]error{private: RefusedError{policy.RuleVisitors}}},
		"guests of whom none is picked": {func(s *Set) {
			s.EndPrivate(func(visitor.Guest) bool { return false })
		}, [3]error{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var here Set
			var answers [3]answer
			var visits [3]*Visit
			var ctxs [3]context.Context
			for i := range visits {
				ctxs[i], visits[i] = here.Enter(t.Context(), &answers[i])
				defer visits[i].Leave()
			}
			shown := new(policy.Presented)
			visits[guest].LetIn(policy.Guest{Target: "/now-shut", Certificate: shown})
			visits[private].IsOf(&visitor.Guest{Client: "ann"})
			visits[private].LetIn(policy.Guest{Target: "/open"})
			if got := here.Presented(); len(got) != 1 || got[0] != shown {
				t.Errorf("got certificates %v, want that of the first", got)
			}
			test.end(&here)
			for i, v := range visits {
				if got := v.Why(); got != test.want[i] || (ctxs[i].Err() != nil) != (got != nil) || answers[i].gaveUp != (got != nil) {
					t.Errorf("visit %d: got %v, context %v, answer %+v, want %v", i, got, ctxs[i].Err(), answers[i], test.want[i])
				}
			}
		})
	}
}

func TestRequestsOfWhichNothingMovesEnd(t *testing.T) {
	const limit = time.Minute
	var here Set
	var still, moving answer
	_, a := here.Enter(t.Context(), &still)
	_, b := here.Enter(t.Context(), &moving)
	_, connection := here.Enter(t.Context(), nil)
	for _, v := range []*Visit{a, b, connection} {
		defer v.Leave()
	}
	const begin = time.Hour // of whatever clock that is
	here.EndIdle(begin, limit)
	moving.moved = 1
	here.EndIdle(begin+limit-1, limit)
	if a.Why() != nil || b.Why() != nil {
		t.Errorf("a moment before the limit: got %v and %v, want no end", a.Why(), b.Why())
	}
	here.EndIdle(begin+limit, limit)
	if !errors.Is(a.Why(), ErrStill) || !still.gaveUp || b.Why() != nil || connection.Why() != nil {
		t.Errorf("at the limit: got %v, %v and for a connection %v, want the end of the first", a.Why(), b.Why(), connection.Why())
	}
	b.End()
	if !errors.Is(b.Why(), ErrTooMuch) || !moving.gaveUp {
		t.Errorf("too much of it in memory: got %v", b.Why())
	}
}

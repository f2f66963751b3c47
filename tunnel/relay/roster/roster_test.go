package roster

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func small() *Roster[string] {
	return &Roster[string]{Limits: Limits{Sessions: 3, PerClient: 2, Replaced: 2}}
}

// join adds a session whose value is its id.
func join(t *testing.T, r *Roster[string], id string, a Agent) *Replaced[string] {
	t.Helper()
	old, err := r.Join(id, a, id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return old
}

func TestNewestSessionIsTheAgents(t *testing.T) {
	r := &Roster[string]{Limits: Limits{Sessions: 10, PerClient: 10}}
	a := Agent{"nas", "i1"}
	if old := join(t, r, "one", a); old != nil {
		t.Errorf("the first replaces %v", old)
	}
	before := "one"
	for _, id := range []string{"two", "three"} {
		if old := join(t, r, id, a); old == nil || old.Session != before {
			t.Errorf("%s replaces %v, want %s", id, old, before)
		}
		before = id
	}
	join(t, r, "other", Agent{"nas", "i2"})
	for _, c := range []struct{ leaves, newest string }{{"one", "three"}, {"three", "two"}} {
		if last := r.Leave(c.leaves); last || r.Newest(a) != c.newest {
			t.Errorf("after %s: last %t, newest %q, want %q", c.leaves, last, r.Newest(a), c.newest)
		}
	}
	if r.Session("three") != "" || r.Session("two") != "two" {
		t.Error("a session that left is found, or one that is there is not")
	}
	if away, _ := r.Away(a); away {
		t.Error("an agent with an older session counts as away")
	}
	list := r.OfClient("nas")
	if slices.Sort(list); !slices.Equal(list, []string{"other", "two"}) || r.Len() != 2 {
		t.Errorf("there are %q, %d", list, r.Len())
	}
	if r.Leave("two") || !r.Leave("other") || r.Leave("other") || len(r.All()) != 0 {
		t.Error("the last of a client is not told from the others")
	}
}

func TestLimits(t *testing.T) {
	r := small()
	join(t, r, "1", Agent{"nas", "i1"})
	join(t, r, "2", Agent{"nas", "i2"})
	if _, err := r.Join("3", Agent{"nas", "i3"}, "3"); !errors.Is(err, ErrClientFull) {
		t.Errorf("a third agent of a client: %v", err)
	}
	join(t, r, "3", Agent{"laptop", "i1"})
	if _, err := r.Join("4", Agent{"phone", "i1"}, "4"); !errors.Is(err, ErrFull) {
		t.Errorf("a fourth agent: %v", err)
	}
	// Who is there comes anew in any case, but does not leave any number behind.
	for i, crowded := range []bool{false, false, true} {
		old := join(t, r, fmt.Sprint("again", i), Agent{"nas", "i1"})
		if old == nil || old.Crowded != crowded {
			t.Errorf("time %d: %+v, want crowded %t", i, old, crowded)
		}
	}
}

// TestTheSessionBeforeIsTheAgentsAgain makes the newest of many sessions leave, also of
// another agent of the client.
func TestTheSessionBeforeIsTheAgentsAgain(t *testing.T) {
	const sessions = 20
	r := &Roster[string]{Limits: Limits{Sessions: 2 * sessions, PerClient: 2}}
	a, other := Agent{"nas", "i1"}, Agent{"nas", "i2"}
	for n := range sessions {
		join(t, r, fmt.Sprint("a", n), a)
		join(t, r, fmt.Sprint("other", n), other)
	}
	for n := sessions - 1; n > 0; n-- {
		r.Leave(fmt.Sprint("a", n))
		if got, want := r.Newest(a), fmt.Sprint("a", n-1); got != want {
			t.Fatalf("after the session %d left, the newest is %s, want %s", n, got, want)
		}
	}
}

// TestReplacedSessionsAreBoundedTwice checks the limits per client and in total.
func TestReplacedSessionsAreBoundedTwice(t *testing.T) {
	for _, c := range []struct {
		bound   string
		limits  Limits
		crowded []bool
	}{
		{"of a client", Limits{Sessions: 10, PerClient: 1, Replaced: 10}, []bool{false, true}},
		{"of all", Limits{Sessions: 1, PerClient: 10, Replaced: 2}, []bool{false, false, true}},
	} {
		r := &Roster[string]{Limits: c.limits}
		a := Agent{"nas", "i1"}
		join(t, r, "first", a)
		for n, want := range c.crowded {
			if old := join(t, r, fmt.Sprint("again", n), a); old == nil || old.Crowded != want {
				t.Errorf("%s, time %d: %+v, want crowded %t", c.bound, n, old, want)
			}
		}
	}
}

func TestNobodyJoinsAfterClose(t *testing.T) {
	r := small()
	join(t, r, "1", Agent{"nas", "i1"})
	if r.Closed() {
		t.Error("closed from the start")
	}
	if there := r.Close(); !slices.Equal(there, []string{"1"}) || !r.Closed() {
		t.Errorf("there were %q", there)
	}
	if _, err := r.Join("2", Agent{"nas", "i1"}, "2"); !errors.Is(err, ErrClosed) {
		t.Errorf("the same agent anew: %v", err)
	}
}

func TestAwayIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := small()
		a := Agent{"nas", "i1"}
		if away, since := r.Away(a); !away || !since.IsZero() {
			t.Errorf("an agent that never was: %t, %v", away, since)
		}
		join(t, r, "1", a)
		r.Left(a, time.Now()) // of elsewhere: it is here
		if away, _ := r.Away(a); away {
			t.Error("an agent that is here counts as away")
		}
		time.Sleep(time.Hour)
		r.Leave("1")
		if away, since := r.Away(a); !away || !since.Equal(time.Now()) {
			t.Errorf("an agent that left now: %t, %v", away, since)
		}
		r.Came(a)
		if _, since := r.Away(a); !since.IsZero() {
			t.Errorf("an agent that is elsewhere is away since %v", since)
		}
		r.Left(a, time.Now())
		time.Sleep(time.Minute)
		if r.Forget(time.Now().Add(-time.Hour)); !r.remembers(a) {
			t.Error("forgotten too early")
		}
		if r.Forget(time.Now()); r.remembers(a) {
			t.Error("remembered too long")
		}
	})
}

func (r *Roster[S]) remembers(a Agent) bool {
	_, since := r.Away(a)
	return !since.IsZero()
}

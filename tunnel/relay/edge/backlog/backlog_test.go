package backlog

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/monotime"
)

// TestAnswersOfAllAgentsShareABound has visitors of many agents who read nothing, and one who
// is waiting for an origin.
func TestAnswersOfAllAgentsShareABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(DefaultMemory)
		u := &b.unread
		reads := 0
		for range DefaultMemory / AnswerWindow / 16 {
			agent := new(int)
			for range 16 {
				b.Answer(http.NoBody, agent, func() {})
			}
		}
		over := b.Answer(http.NoBody, new(int), func() {})
		waits := b.Answer(http.NoBody, new(int), func() { reads++ })
		waits.(*answer).away.Store(0)
		u.relieve(monotime.Now() + slowOfAll - 1)
		if n := u.givenUp.Load(); n != 0 {
			t.Errorf("%d answers were given up within %v", n, slowOfAll)
		}
		u.relieve(monotime.Now() + slowOfAll)
		if n := u.givenUp.Load(); n != 1 || reads != 0 {
			t.Errorf("%d answers were given up, of which %d waited for its origin; want 1 and 0", n, reads)
		}
		over.Close()
		u.relieve(monotime.Now() + time.Hour)
		if n := u.givenUp.Load(); n != 1 {
			t.Errorf("%d answers were given up though what was unread was within its bounds, want 1", n)
		}
	})
}

// TestWhoWaitedLongestIsGivenUp also checks that nobody is given up while their agent, and all
// agents together, are within the limits.
func TestWhoWaitedLongestIsGivenUp(t *testing.T) {
	const now = time.Hour
	bounds := room{ofAgent: 10, ofAll: 20}
	one, other := new(int), new(int)
	for name, test := range map[string]struct {
		list []waiting // giveUp is the test's own
		want []int
	}{
		"an agent's are as many as may be": {[]waiting{{0, one, 5, nil}, {0, one, 5, nil}}, nil},
		"an agent's are too many": {
			[]waiting{{now - SlowVisitor + 1, one, 6, nil}, {now - SlowVisitor, one, 5, nil}, {now - SlowVisitor, other, 9, nil}}, []int{1},
		},
		"an agent's are too many, for a moment":        {[]waiting{{now - SlowVisitor + 1, one, 11, nil}}, nil},
		"those without an agent have the bound of all": {[]waiting{{now - SlowVisitor, nil, 11, nil}}, nil},
		"all are too many": {
			[]waiting{{now - slowOfAll, one, 10, nil}, {now - slowOfAll - 1, nil, 2, nil}, {now - slowOfAll - 2, other, 0, nil}, {now - slowOfAll, other, 9, nil}}, []int{1},
		},
		"all are too many, for a moment": {[]waiting{{now - slowOfAll + 1, one, 10, nil}, {now - slowOfAll + 1, nil, 11, nil}}, nil},
		"several must go": {
			[]waiting{{now - SlowVisitor, one, 4, nil}, {now - SlowVisitor - 1, one, 4, nil}, {now - SlowVisitor - 2, one, 4, nil}, {now - SlowVisitor - 3, one, 7, nil}}, []int{3, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			for i := range test.list {
				test.list[i].giveUp = func() { got = append(got, i) }
			}
			if n := bounds.relieve(test.list, now); n != uint64(len(test.want)) || !slices.Equal(got, test.want) {
				t.Errorf("%d were given up: %v, want %v", n, got, test.want)
			}
		})
	}
}

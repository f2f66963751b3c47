package backlog

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/monotime"
)

// TestAnswersOfAllAgentsShareABound has visitors of many agents read nothing, and
// one that waits for an origin.
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

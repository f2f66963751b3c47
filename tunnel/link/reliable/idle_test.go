package reliable

import (
	"testing"
	"time"
)

// TestIdleSessionSaysLittle counts what an idle session sends and how often its
// sender gets up: for a sign of life in each interval and its answer.
func TestIdleSessionSaysLittle(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		transfer(t, w.a, w.b, 100_000)
		time.Sleep(time.Minute)
		count := func() (packets, rounds uint64) {
			for _, s := range []*Session{w.a, w.b} {
				s.mu.Lock()
				packets, rounds = packets+s.packetsSent, rounds+s.rounds
				s.mu.Unlock()
			}
			return packets, rounds
		}
		packets, rounds := count()
		time.Sleep(time.Hour)
		morePackets, moreRounds := count()
		packets, rounds = morePackets-packets, moreRounds-rounds
		intervals := uint64(time.Hour / (10 * time.Second))
		t.Logf("in an hour both ends together: %d packets, %d times up, in %d intervals", packets, rounds, intervals)
		if packets > 5*intervals { // the path's MTU is tried again, too
			t.Errorf("sent %d packets, want at most %d", packets, 5*intervals)
		}
		if rounds > 10*intervals {
			t.Errorf("the senders got up %d times, want at most %d", rounds, 10*intervals)
		}
	})
}

package agent

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBackoffIsPatientOnlyLater holds how long the keeper waits between two
// attempts, by how long ago the session was lost.
func TestBackoffIsPatientOnlyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoff
		begun := time.Now()
		longest := map[time.Duration]time.Duration{} // by phase
		for time.Since(begun) < 20*time.Minute {
			phase := maxCeiling
			switch ago := time.Since(begun); {
			case ago < urgent:
				phase = firstCeiling
			case ago < eager:
				phase = eagerCeiling
			}
			wait := b.next()
			if wait < 50*time.Millisecond || wait > phase+50*time.Millisecond {
				t.Fatalf("%v after the loss: a pause of %v, want 50 ms to %v more", time.Since(begun), wait, phase)
			}
			longest[phase] = max(longest[phase], wait)
			time.Sleep(wait)
		}
		for _, phase := range []time.Duration{firstCeiling, eagerCeiling, maxCeiling} {
			if longest[phase] < phase/3 {
				t.Errorf("the longest pause below %v was %v: the pauses do not spread", phase, longest[phase])
			}
		}
		b.reset()
		if wait := b.next(); wait > firstCeiling+50*time.Millisecond {
			t.Errorf("after a reset: a pause of %v", wait)
		}
	})
}

// TestSecondSessionIsNotLongMissed holds how long the pauses between two attempts at a
// second session are: nobody is told when what is amiss with a node has passed.
func TestSecondSessionIsNotLongMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k seconder
		k.soon(secondFirst)
		begun := time.Now()
		var young, old time.Duration
		for time.Since(begun) < 20*time.Minute {
			late := time.Since(begun) >= eager
			wait := k.later()
			if late {
				old = max(old, wait)
			} else {
				young = max(young, wait)
			}
			time.Sleep(wait)
		}
		if young < eagerCeiling || young > eagerCeiling*3/2 || old < secondMost || old > secondMost*3/2 {
			t.Errorf("the longest pauses were %v in the first %v and %v later; want %v and %v, give or take a half", young, eager, old, eagerCeiling, secondMost)
		}
		k.soon(secondFirst)
		if wait := k.later(); wait > time.Second {
			t.Errorf("for a new reason: a pause of %v", wait)
		}
	})
}

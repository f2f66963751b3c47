package reliable

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestAckDelayBeyondAllBounds: a peer says that it held an acknowledgement back for
// longer than there are numbers.
func TestAckDelayBeyondAllBounds(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		transfer(t, w.a, w.b, 1<<20)
		st, _ := pair(t, w.a, w.b)
		time.Sleep(time.Second)
		if _, err := st.Write([]byte{'!'}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // the true answer is not there yet
		w.a.mu.Lock()
		defer w.a.mu.Unlock()
		last := w.carA.NextNumber() - 1
		if err := w.a.onAck(w.a.now(), []span{{last, last}}, math.MaxInt64); err != nil {
			t.Fatal(err)
		}
		if got := w.a.control.(*bbr).minRTT; got <= 0 {
			t.Errorf("the shortest round trip is %v", got)
		}
	})
}

// TestAcknowledgementsComeInTime: a single packet's within the delay that round trips are
// corrected by, and at once for every second one and for one behind a gap. A writer who
// waits longer sends again what has arrived, and learns late of what has not.
func TestAcknowledgementsComeInTime(t *testing.T) {
	const trip = 10 * time.Millisecond
	for name, c := range map[string]struct {
		packets int
		gap     uint64 // numbers that are missing before them
		want    time.Duration
	}{
		"one":          {1, 0, trip + maxAckDelay},
		"two":          {2, 0, trip},
		"behind a gap": {1, 1, trip},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, near, Config{}, func(w *world) {
				st, _ := pair(t, w.a, w.b)
				time.Sleep(5 * time.Second) // what both do at first is over
				w.carA.setSteal(func() uint64 { return c.gap })
				for range c.packets {
					if _, err := st.Write([]byte("small")); err != nil {
						t.Fatal(err)
					}
					synctest.Wait() // it has left
				}
				time.Sleep(c.want - time.Millisecond)
				if got := w.a.Stats().InFlight; got == 0 {
					t.Errorf("it is acknowledged before %v, want after", c.want)
				}
				time.Sleep(2 * time.Millisecond)
				if got := w.a.Stats().InFlight; got != 0 {
					t.Errorf("%d bytes are not acknowledged after %v", got, c.want)
				}
			})
		})
	}
}

package reliable

import (
	"math"
	"testing"
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

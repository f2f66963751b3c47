package reliable

import (
	"testing"
	"time"
)

// A peer that grants the session no window, and lets streams come and go, is held
// no memory for those that have gone.
func TestStreamsThatStarvedAreForgotten(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		w.a.mu.Lock()
		w.a.sentData = w.a.peerData // the peer has granted no more
		w.a.mu.Unlock()
		for range 1000 {
			st, err := w.a.OpenStream(w.t.Context())
			if err != nil {
				w.t.Fatal(err)
			}
			if _, err := st.Write([]byte("hello")); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // it is tried, and starves
			st.Reset()
			far, err := w.b.AcceptStream(w.t.Context())
			if err != nil {
				w.t.Fatal(err)
			}
			far.Reset()
			time.Sleep(20 * time.Millisecond)
		}
		w.a.mu.Lock()
		defer w.a.mu.Unlock()
		if len(w.a.streams) > 10 || len(w.a.starved) > 200 {
			w.t.Errorf("%d streams are open, and %d are held", len(w.a.streams), len(w.a.starved))
		}
	})
}

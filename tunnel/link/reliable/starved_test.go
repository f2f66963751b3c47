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

// TestStreamsThatStarvedGoOn, all of them, up to the window that the peer grants and no
// further.
func TestStreamsThatStarvedGoOn(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		const streams, size, first = 3, 20_000, 30_000
		var out, in [streams]*Stream
		for i := range out {
			out[i], in[i] = pair(t, w.a, w.b)
		}
		time.Sleep(time.Second)
		w.a.mu.Lock()
		began := w.a.sentData
		w.a.peerData = began + first
		w.a.mu.Unlock()
		for i := range out {
			if _, err := out[i].Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		grant := func(window uint64) {
			frame := appendNumbers(nil, frameMaxData, began+window)
			b := append(make([]byte, plainHead), frame...)
			if _, err := w.carB.Send([][]byte{append(b, make([]byte, plainTail)...)}); err != nil {
				t.Fatal(err)
			}
		}
		came := func() (n uint64) {
			time.Sleep(time.Second)
			for i := range in {
				w.b.mu.Lock()
				n += in[i].available() - 1
				w.b.mu.Unlock()
			}
			return n
		}
		for _, window := range []uint64{first, first + 1, first + 15_000, streams * size} {
			grant(window)
			if got := came(); got != window {
				t.Fatalf("%d bytes came, want the %d that were granted", got, window)
			}
		}
		grant(first) // late, and less than was granted since
		if _, err := out[0].Write([]byte{'!'}); err != nil {
			t.Fatal(err)
		}
		grant(streams*size + 1)
		if got := came(); got != streams*size+1 {
			t.Errorf("%d bytes came, want the last as well", got)
		}
	})
}

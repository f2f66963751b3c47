package reliable

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// TestWhatIsSaidOnceOutlivesItsLoss: limits, ends and resets are in one packet each, and
// nothing else would tell the peer. It would wait for ever.
func TestWhatIsSaidOnceOutlivesItsLoss(t *testing.T) {
	locked := func(s *Session, do func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
		s.wake()
	}
	for name, c := range map[string]struct {
		before func(w *world, st, in *Stream)
		say    func(w *world, st, in *Stream) // in a packet that gets lost
		want   func(w *world, st, in *Stream) bool
	}{
		"the session's window": {
			say:  func(w *world, _, _ *Stream) { locked(w.b, func() { w.b.recvAllowed++; w.b.tellData = true }) },
			want: func(w *world, _, _ *Stream) bool { return w.a.peerData == w.b.recvAllowed },
		},
		"how many streams there may be": {
			say:  func(w *world, _, _ *Stream) { locked(w.b, func() { w.b.ourStreams++; w.b.tellStreams = true }) },
			want: func(w *world, _, _ *Stream) bool { return w.a.peerStreams == w.b.ourStreams },
		},
		"how long the session is silent": {
			say:  func(w *world, _, _ *Stream) { locked(w.a, func() { w.a.keep.set(7 * time.Second) }) },
			want: func(w *world, _, _ *Stream) bool { return w.b.keep.interval == 7*time.Second },
		},
		"the window of a stream": {
			before: func(_ *world, st, _ *Stream) {
				_, _ = st.Write(make([]byte, initialStreamWindow+10_000)) // and nothing more comes after it
				time.Sleep(time.Second)                                   // it is full
			},
			say: func(_ *world, _, in *Stream) { _, _ = io.ReadFull(in, make([]byte, initialStreamWindow-1)) },
			want: func(_ *world, st, in *Stream) bool {
				return st.allowed == in.granted && in.highest > initialStreamWindow
			},
		},
		"that nobody reads": {
			say:  func(_ *world, _, in *Stream) { in.Close() },
			want: func(_ *world, st, _ *Stream) bool { return st.stopped },
		},
		"that a stream is given up": {
			say:  func(_ *world, st, _ *Stream) { st.Reset() },
			want: func(_ *world, _, in *Stream) bool { return in.gone },
		},
		"the end": {
			say:  func(_ *world, st, _ *Stream) { _ = st.CloseWrite() },
			want: func(_ *world, _, in *Stream) bool { return in.complete() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, near, Config{}, func(w *world) {
				st, in := pair(t, w.a, w.b)
				time.Sleep(3 * time.Second) // what both do at first is over
				if c.before != nil {
					c.before(w, st, in)
				}
				loss := func(share float64) {
					for _, l := range []*simnet.Link{w.there, w.back} {
						l.Change(func(p *simnet.Path) { p.Loss = share })
					}
				}
				loss(1)
				c.say(w, st, in)
				synctest.Wait() // it has left
				loss(0)
				known := func() bool {
					w.a.mu.Lock()
					defer w.a.mu.Unlock()
					w.b.mu.Lock()
					defer w.b.mu.Unlock()
					return c.want(w, st, in)
				}
				if time.Sleep(7 * time.Millisecond); known() {
					t.Error("it was not lost")
				}
				if time.Sleep(2 * time.Second); !known() {
					t.Error("the peer does not know it")
				}
			})
		})
	}
}

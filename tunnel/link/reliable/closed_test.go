package reliable

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"adit/internal/simnet"
)

// raw sends frames as a's packet, whatever a's session thinks of it.
func (w *world) raw(frames ...[]byte) {
	b := make([]byte, plainHead, 2048)
	for _, f := range frames {
		b = append(b, f...)
	}
	w.carA.Send([][]byte{b[:len(b)+plainTail]})
}

// TestStreamsThatNobodyAcceptsAreBounded: a peer that opens streams and gives them
// up at once may have no more of them waiting than it may have open.
func TestStreamsThatNobodyAcceptsAreBounded(t *testing.T) {
	inBubble(t, near, Config{MaxStreams: initialStreams}, func(w *world) {
		w.a.mu.Lock()
		w.a.nextLocal = 1 << 30 // it takes the answers for those to streams of its own
		w.a.mu.Unlock()
		next := uint64(0)
		opened := func() { // as far as b allows
			w.b.mu.Lock()
			limit := w.b.ourStreams
			w.b.mu.Unlock()
			for next < limit {
				var frames [][]byte
				for ; next < limit && len(frames) < 80; next++ {
					id := next << 2
					frames = append(frames, appendNumbers(nil, frameResetStream, id, 0, 0), appendNumbers(nil, frameStopSending, id, 0))
				}
				w.raw(frames...)
			}
			time.Sleep(50 * time.Millisecond) // a acknowledges the answers
		}
		for range 20 {
			opened()
		}
		w.b.mu.Lock()
		waiting := len(w.b.accepts)
		w.b.mu.Unlock()
		if waiting > initialStreams {
			t.Fatalf("%d streams wait to be accepted, want at most %d", waiting, initialStreams)
		}
		for range waiting { // who accepts them, makes room for as many
			if _, err := w.b.AcceptStream(w.t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		before := next
		opened()
		if next-before < initialStreams/2 {
			t.Errorf("%d more could be opened after all were accepted", next-before)
		}
	})
}

// TestOwnStreamsAreBounded: a peer that allows any number of streams, and ends
// none, has no more of them held for it than a session may have.
func TestOwnStreamsAreBounded(t *testing.T) {
	inBubble(t, near, Config{OwnStreams: 50}, func(w *world) {
		for range 50 {
			st, err := w.a.OpenStream(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			st.Write([]byte{'!'})
			st.CloseWrite() // b does not end its direction
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if _, err := w.a.OpenStream(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("one more: got %v, want that it waits", err)
		}
		for range 10 {
			in, err := w.b.AcceptStream(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			in.Close()
		}
		ctx, cancel = context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		for range 10 {
			if _, err := w.a.OpenStream(ctx); err != nil {
				t.Fatalf("after ten have ended: %v", err)
			}
		}
	})
}

// TestClosedStreamsHoldBoundedMemory: what was written to streams that are closed
// is delivered, but a peer that takes none of it has not all of it held for good.
func TestClosedStreamsHoldBoundedMemory(t *testing.T) {
	const buffer = 1 << 20
	inBubble(t, near, Config{SendBuffer: buffer}, func(w *world) {
		w.a.mu.Lock()
		w.a.sentData = w.a.peerData // the peer has granted no more
		w.a.mu.Unlock()
		var most int64
		for range 100 {
			st, err := w.a.OpenStream(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			st.SetWriteDeadline(time.Now().Add(time.Second))
			st.Write(make([]byte, 64<<10))
			st.Close()
			time.Sleep(20 * time.Millisecond)
			w.a.mu.Lock()
			most = max(most, w.a.buffered)
			w.a.mu.Unlock()
		}
		if most > buffer+(128<<10) || most < buffer/2 {
			t.Errorf("%d bytes were held for streams that are closed, want at most %d and more than half of that", most, buffer+(128<<10))
		}
	})
}

// TestClosedStreamsAreDelivered: also beside open ones that hold more than all may.
func TestClosedStreamsAreDelivered(t *testing.T) {
	const streams, each = 60, 48 << 10 // every third is closed
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond, Rate: 250_000}, Config{SendBuffer: 1 << 20}, func(w *world) {
		for i := range streams {
			st, err := w.a.OpenStream(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := st.Write(make([]byte, each)); err != nil {
				t.Fatal(err)
			}
			if st.CloseWrite(); i%3 == 0 {
				st.Close()
			}
		}
		w.a.mu.Lock()
		if w.a.buffered <= 1<<20 {
			t.Errorf("only %d bytes wait", w.a.buffered)
		}
		w.a.mu.Unlock()
		for range streams {
			in, err := w.b.AcceptStream(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.Copy(io.Discard, in); got != each || err != nil {
				t.Errorf("%d bytes of %d came, %v", got, each, err)
			}
			in.Close()
		}
	})
}

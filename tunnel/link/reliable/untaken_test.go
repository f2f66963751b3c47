package reliable

import (
	"context"
	"sync"
	"testing"
	"time"

	"adit/internal/simnet"
)

// TestOpenStreamsHoldBoundedMemory: a peer that takes nothing of many open streams
// has not much more held for them than the session may hold.
func TestOpenStreamsHoldBoundedMemory(t *testing.T) {
	const buffer, streams = 1 << 20, 500
	inBubble(t, near, Config{SendBuffer: buffer}, func(w *world) {
		w.a.mu.Lock()
		w.a.sentData = w.a.peerData // the peer has granted no more
		w.a.mu.Unlock()
		var writers sync.WaitGroup
		for range streams {
			st, err := w.a.OpenStream(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			st.SetWriteDeadline(time.Now().Add(time.Second))
			writers.Go(func() { st.Write(make([]byte, 128<<10)) })
		}
		writers.Wait()
		w.a.mu.Lock()
		held := w.a.buffered
		for _, st := range w.a.streams {
			if st.end-st.base < leastSendLimit {
				t.Errorf("a stream may hold only %d bytes", st.end-st.base)
			}
		}
		if w.a.laying != 0 {
			t.Errorf("%d bytes are being written", w.a.laying)
		}
		w.a.mu.Unlock()
		if most := int64(2*buffer + streams*leastSendLimit); held > most || held < buffer {
			t.Errorf("%d bytes are held for %d streams, want at most %d and more than %d", held, streams, most, buffer)
		}
	})
}

// TestManyWritersFillThePath: also if all streams together hold more than they may.
func TestManyWritersFillThePath(t *testing.T) {
	const streams, each, rate = 400, 64 << 10, 2_500_000
	path := simnet.Path{Delay: 20 * time.Millisecond, Rate: rate}
	inBubble(t, path, Config{SendBuffer: 1 << 20}, func(w *world) {
		began := time.Now()
		var both sync.WaitGroup
		for range streams {
			st, err := w.a.OpenStream(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			both.Go(func() {
				if _, err := st.Write(make([]byte, each)); err != nil {
					t.Error(err)
				}
				st.CloseWrite()
			})
			both.Go(func() {
				in, err := w.b.AcceptStream(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				if n := drain(in); n != each {
					t.Errorf("%d bytes of %d came", n, each)
				}
			})
		}
		both.Wait()
		ideal := time.Duration(float64(streams*each) / rate * float64(time.Second))
		took := time.Since(began)
		t.Logf("%v, and %v at best", took, ideal)
		if took > ideal*5/4 {
			t.Errorf("it took %v, and %v at best", took, ideal)
		}
	})
}

func drain(in *Stream) (n int) {
	b := make([]byte, 16<<10)
	for {
		m, err := in.Read(b)
		if n += m; err != nil {
			return n
		}
	}
}

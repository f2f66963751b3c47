package reliable

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestNobodyTakesWhatAReaderCopies has bytes come all the time while a reader
// copies what its taker has left: they may not go to the taker then, which would
// get the same bytes once more. The bytes are given to the session as its
// receiver does it, with no time for anything else.
func TestNobodyTakesWhatAReaderCopies(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		_, in := pair(t, w.a, w.b)
		s := w.b
		rng := rand.New(rand.NewPCG(1, 2))
		want := make([]byte, 1<<20)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		done := make(chan []byte)
		go func() {
			defer close(done)
			var got []byte
			buf := make([]byte, 4<<10)
			for {
				n, err := in.ReadDirect(buf, func(b []byte) int {
					got = append(got, b[:len(b)/2]...)
					return len(b) / 2
				})
				got = append(got, buf[:n]...)
				if err != nil {
					if err != io.EOF {
						t.Errorf("read: %v", err)
					}
					done <- got
					return
				}
			}
		}()
		s.mu.Lock()
		begin := in.highest
		s.mu.Unlock()
		for off := 0; off < len(want); runtime.Gosched() {
			n := min(1+rng.IntN(3000), len(want)-off)
			s.mu.Lock()
			end := begin + uint64(off+n)
			if end <= in.granted && s.recvData+uint64(n) <= s.recvAllowed {
				f := frame{Stream: in.id, Offset: end - uint64(n), Data: want[off : off+n], Fin: off+n == len(want)}
				if err := s.onStreamData(&f); err != nil {
					t.Error(err)
				}
				s.handOver()
				off += n
			}
			s.mu.Unlock()
		}
		if got := <-done; !bytes.Equal(got, want) {
			t.Errorf("got %d bytes that differ from the %d that came", len(got), len(want))
		}
	})
}

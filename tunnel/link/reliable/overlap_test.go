package reliable

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// TestOverlapsAreReadOnce: a stream comes in parts that overlap, in any order, while it
// is read. What is read is what was sent, and no more counts as held than waits for its
// reader.
func TestOverlapsAreReadOnce(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		const size = 3*blockSize + 100
		all := make([]byte, size)
		pattern(all, 0, 0)
		part := func(lo, hi int) {
			w.raw(append(appendStreamHeader(nil, 0, uint64(lo), hi-lo, hi == size), all[lo:hi]...))
		}
		part(0, 1)
		in, err := w.b.AcceptStream(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		got := make([]byte, 0, size)
		for upTo := 0; upTo < size; {
			lo := max(0, upTo-rng.IntN(2000))
			if rng.IntN(3) == 0 {
				lo += rng.IntN(3000) // with a gap, most often
			}
			lo = min(lo, size-1)
			hi := min(lo+1+rng.IntN(1400), size)
			part(lo, hi)
			time.Sleep(20 * time.Millisecond)
			w.b.mu.Lock()
			upTo = int(in.available())
			held, want := w.b.held(), int64(in.highest)-int64(len(got))
			w.b.mu.Unlock()
			if held != want {
				t.Fatalf("%d bytes count as held, want %d", held, want)
			}
			n, err := in.Read(got[len(got) : len(got)+rng.IntN(upTo-len(got)+1)])
			if err != nil {
				t.Fatal(err)
			}
			got = got[:len(got)+n]
		}
		rest, err := io.ReadAll(in)
		if got = append(got, rest...); err != nil || string(got) != string(all) {
			t.Errorf("got %d bytes of %d, and others, or %v", len(got), size, err)
		}
	})
}

// TestNothingIsHeldOfWhatNobodyReads: a peer that goes on with a stream whose reader has
// closed it takes nothing of the memory that the others have.
func TestNothingIsHeldOfWhatNobodyReads(t *testing.T) {
	data := func(off uint64, n int, fin bool) []byte {
		return append(appendStreamHeader(nil, 0, off, n, fin), make([]byte, n)...)
	}
	for name, end := range map[string][]byte{"ended": data(5000, 700, true), "reset": appendNumbers(nil, frameResetStream, 0, codeNone, 9000)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, near, Config{}, func(w *world) {
				w.a.mu.Lock()
				w.a.nextLocal = 1 // it takes the answers for those to a stream of its own
				w.a.mu.Unlock()
				none := func(frame []byte) {
					t.Helper()
					w.raw(frame)
					time.Sleep(20 * time.Millisecond)
					w.b.mu.Lock()
					defer w.b.mu.Unlock()
					if w.b.err != nil || w.b.held() != 0 || w.b.pieces != 0 {
						t.Errorf("%d bytes in %d pieces are held, want none; the session: %v", w.b.held(), w.b.pieces, w.b.err)
					}
				}
				w.raw(data(0, 1000, false))
				in, err := w.b.AcceptStream(w.t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(in, make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
				w.raw(data(2000, 500, false))
				time.Sleep(20 * time.Millisecond)
				in.Close()
				none(data(3000, 700, false))
				none(data(3200, 800, false))
				none(end)
			})
		})
	}
}

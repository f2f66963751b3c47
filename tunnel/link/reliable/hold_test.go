package reliable

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"adit/tunnel/link/budget"
)

// standStill opens streams from a to b that are read for a while, or not at
// all, and then no more, while a has always more for them.
func standStill(t *testing.T, w *world, streams int, read int64) (stuck []*Stream, end func()) {
	t.Helper()
	var writing sync.WaitGroup
	var from []*Stream
	for range streams {
		st, in := pair(t, w.a, w.b)
		from, stuck = append(from, st), append(stuck, in)
		writing.Go(func() {
			for {
				if _, err := st.Write(make([]byte, 256<<10)); err != nil {
					return
				}
			}
		})
		if _, err := io.CopyN(io.Discard, in, read); err != nil {
			t.Fatal(err)
		}
	}
	return stuck, func() {
		for _, st := range from {
			st.Reset()
		}
		writing.Wait()
	}
}

func TestReadersThatStandStillStopNobody(t *testing.T) {
	for name, c := range map[string]struct {
		streams int
		read    int64
		memory  int64 // of the budget
		given   bool  // some are given up
	}{
		"few who read much before":   {12, 12 << 20, 1 << 30, false},
		"many":                       {300, 0, 1 << 30, true},
		"with little memory":         {60, 0, 4 << 20, true},
		"who read, of little memory": {4, 12 << 20, 4 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			streams := c.streams
			if slowed && c.read > 0 {
				streams = min(streams, 4)
			}
			memory := budget.New(c.memory)
			inBubble(t, near, Config{Budget: memory}, func(w *world) {
				stuck, end := standStill(t, w, streams, c.read)
				time.Sleep(10 * time.Second)
				for range 3 { // one like those, and a small one: neither waits for them
					began := time.Now()
					transfer(t, w.a, w.b, 8<<20)
					if took := time.Since(began); took > 500*time.Millisecond {
						t.Errorf("8 MiB took %v beside streams that nobody reads", took)
					}
				}
				w.b.mu.Lock()
				held, most := w.b.held(), int64(w.b.cfg.SessionWindow)
				w.b.mu.Unlock()
				if most = min(most, initialSessionWindow+c.memory); held > most {
					t.Errorf("%d bytes are held, want at most %d", held, most)
				}
				given := 0
				for _, in := range stuck {
					in.SetReadDeadline(time.Now().Add(-time.Second))
					if _, err := in.Read(make([]byte, 1)); errors.Is(err, ErrReset) {
						given++
					}
				}
				if memory.GivenUp() != uint64(given) {
					t.Errorf("%d streams were counted, and %d given up", memory.GivenUp(), given)
				}
				if (given > 0) != c.given || given > 3*len(stuck)/4 {
					t.Errorf("%d of %d streams were given up", given, len(stuck))
				}
				end()
				time.Sleep(time.Second)
				w.b.mu.Lock()
				held = w.b.held()
				w.b.mu.Unlock()
				if used := memory.Used(); held != 0 || used > 1<<20 {
					t.Errorf("after the streams: %d held, %d of the budget used", held, used)
				}
			})
			if used := memory.Used(); used != 0 {
				t.Errorf("after the session: %d of the budget used", used)
			}
		})
	}
}

// TestWindowsGrowBesideUnusedOnes: those who read much and then nothing keep
// no window that somebody else could use.
func TestWindowsGrowBesideUnusedOnes(t *testing.T) {
	path := broadband()
	path.Delay = 150 * time.Millisecond
	inBubble(t, path, Config{}, func(w *world) {
		_, end := standStill(t, w, 3, 24<<20)
		time.Sleep(10 * time.Second)
		w.b.mu.Lock()
		held := w.b.held()
		w.b.mu.Unlock()
		began := time.Now()
		transfer(t, w.a, w.b, 60<<20)
		if got := 60 * float64(1<<20) / time.Since(began).Seconds(); got < 8e6 {
			t.Errorf("%.1f MB/s of 12.5 over a path of 300 ms, with %d held", got/1e6, held)
		}
		end()
	})
}

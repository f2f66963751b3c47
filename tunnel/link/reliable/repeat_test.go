package reliable

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"adit/internal/simnet"
)

// saidTwice is how many bytes a session has said twice.
func saidTwice(s *Session) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeats.said
}

// untilLossShows makes requests until both sides know that the path loses packets.
func untilLossShows(t *testing.T, w *world) {
	t.Helper()
	knows := func(s *Session) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.repeats.wanted()
	}
	for range 500 {
		if knows(w.a) && knows(w.b) {
			return
		}
		requestTimes(t, w.a, 10)
	}
	t.Fatal("in 5,000 requests no loss has shown")
}

func TestNothingIsSaidTwiceWhereNothingGetsLost(t *testing.T) {
	inBubble(t, broadband(), Config{}, func(w *world) {
		go answer(w.b, 100)
		requestTimes(t, w.a, 100)
		transfer(t, w.a, w.b, 5<<20)
		if a, b := saidTwice(w.a), saidTwice(w.b); a+b > 0 {
			t.Errorf("said twice: got %d and %d bytes, want none", a, b)
		}
		if lost := w.a.Stats().PacketsLost; lost > 0 {
			t.Fatalf("the path lost %d packets, and was to lose none", lost)
		}
	})
}

// TestWhatIsSaidTwiceIsBounded writes small things faster than may be said
// twice, and then has the path lose nothing any more.
func TestWhatIsSaidTwiceIsBounded(t *testing.T) {
	path := broadband()
	path.Loss = 0.03
	inBubble(t, path, Config{}, func(w *world) {
		go func() {
			for {
				in, err := w.b.AcceptStream(context.Background())
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(io.Discard, in)
					in.Close()
				}()
			}
		}()
		const each = 300 // streams, a kilobyte each in turn
		began := time.Now()
		say := func(rounds int) {
			var streams [each]*Stream
			for i := range streams {
				st, err := w.a.OpenStream(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				streams[i] = st
			}
			for range rounds {
				for _, st := range streams {
					if _, err := st.Write(make([]byte, 1000)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Millisecond)
				}
			}
			for _, st := range streams {
				st.Close()
			}
		}
		say(20)
		most := uint64(repeatBurst + repeatRate*time.Since(began).Seconds())
		said := saidTwice(w.a)
		if said > most {
			t.Errorf("said twice: got %d bytes, want at most %d", said, most)
		}
		if said < most/2 {
			t.Errorf("said twice: got %d bytes, want about %d", said, most)
		}
		w.there.Change(func(p *simnet.Path) { p.Loss = 0 })
		bulk, err := w.a.OpenStream(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bulk.Write(make([]byte, 32<<20)); err != nil {
			t.Fatal(err)
		}
		bulk.Close()
		before := saidTwice(w.a)
		say(5)
		if more := saidTwice(w.a) - before; more > 0 {
			t.Errorf("said twice after the losses have ended: got %d bytes, want none", more)
		}
	})
}

// TestWhatIsSaidTwiceKeepsItsNumber has packets of the carrier's own take
// numbers that the session had expected for its small packets.
func TestWhatIsSaidTwiceKeepsItsNumber(t *testing.T) {
	path := broadband()
	path.Loss = 0.03
	inBubble(t, path, Config{}, func(w *world) {
		rng := rand.New(rand.NewPCG(7, 7))
		w.carA.setSteal(func() uint64 { return rng.Uint64N(50) })
		go answer(w.b, 10_000)
		untilLossShows(t, w)
		took := requestTimes(t, w.a, 200)
		if p := took[len(took)*97/100]; p > 70*time.Millisecond && !slowed {
			t.Errorf("97 of 100 requests: got %v, want at most 70 ms", p)
		}
		if saidTwice(w.a) == 0 || saidTwice(w.b) == 0 {
			t.Errorf("said twice: got %d and %d bytes, want some", saidTwice(w.a), saidTwice(w.b))
		}
	})
}

package reliable

import (
	"context"
	"io"
	"testing"
	"time"
)

// answer answers n small requests.
func answer(s *Session, n int) {
	for range n {
		in, err := s.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			if _, err := io.ReadFull(in, make([]byte, 100)); err == nil {
				in.Write(make([]byte, 1000))
			}
			io.Copy(io.Discard, in)
			in.Close()
		}()
	}
}

// TestBulkAfterLittle has a session that little was asked of for a while move
// bulk as well as a new one: what the application did not send says nothing of
// what the path can take.
func TestBulkAfterLittle(t *testing.T) {
	size := uint64(16 << 20)
	if slowed {
		size /= 2
	}
	for _, before := range []struct {
		name string
		do   func(t *testing.T, w *world)
	}{
		{"requests one after another", func(t *testing.T, w *world) {
			go answer(w.b, 100)
			requestTimes(t, w.a, 100)
		}},
		{"datagrams", func(t *testing.T, w *world) {
			for i := range 3000 {
				from := w.a
				if i%2 == 1 {
					from = w.b
				}
				if err := from.SendDatagram(make([]byte, 200)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
		}},
		{"small transfers with pauses", func(t *testing.T, w *world) {
			for i := range 20 {
				from, to := w.a, w.b
				if i%2 == 1 {
					from, to = w.b, w.a
				}
				transfer(t, from, to, 20_000)
				time.Sleep(200 * time.Millisecond)
			}
		}},
		{"nothing for a minute", func(t *testing.T, w *world) {
			transfer(t, w.a, w.b, 1000)
			transfer(t, w.b, w.a, 1000)
			time.Sleep(time.Minute)
		}},
	} {
		for _, loss := range []float64{0, 0.01} {
			if slowed && loss > 0 {
				continue
			}
			t.Run(before.name, func(t *testing.T) {
				path := broadband()
				path.Loss = loss
				inBubble(t, path, Config{}, func(w *world) {
					before.do(t, w)
					for _, way := range [][2]*Session{{w.a, w.b}, {w.b, w.a}} {
						took := transfer(t, way[0], way[1], size)
						share := float64(size) / took.Seconds() / 12_500_000
						t.Logf("loss %.0f %%: %.2f of the link", loss*100, share)
						if share < 0.5 {
							t.Errorf("loss %.0f %%: bulk then had %.2f of the link, want 0.5", loss*100, share)
						}
					}
				})
			})
		}
	}
}

package reliable

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"adit/internal/simnet"
)

// broadband is 100 Mbit/s at 50 ms with a buffer of 250 ms.
func broadband() simnet.Path {
	return simnet.Path{Delay: 25 * time.Millisecond, Rate: 12_500_000, Buffer: 12_500_000 / 4}
}

func TestGoodputOnBadNetworks(t *testing.T) {
	for _, c := range []struct {
		control Congestion
		loss    float64
		size    uint64
		want    float64 // share of the link
		queue   time.Duration
	}{
		{BBR, 0, 300 << 20, 0.95, 100 * time.Millisecond},
		{BBR, 0.001, 100 << 20, 0.92, 100 * time.Millisecond},
		{BBR, 0.01, 200 << 20, 0.90, 100 * time.Millisecond},
		{BBR, 0.03, 100 << 20, 0.80, 100 * time.Millisecond},
		{CUBIC, 0, 60 << 20, 0.90, 250 * time.Millisecond},
		{CUBIC, 0.001, 10 << 20, 0.05, 250 * time.Millisecond},
		{CUBIC, 0.01, 4 << 20, 0.02, 250 * time.Millisecond},
		{CUBIC, 0.03, 2 << 20, 0.01, 250 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%s/loss=%v", c.control, c.loss), func(t *testing.T) {
			path := broadband()
			path.Loss = c.loss
			if slowed {
				c.size, c.want = c.size/10, c.want/2
			}
			inBubble(t, path, Config{Congestion: c.control}, func(w *world) {
				took := transfer(t, w.a, w.b, c.size)
				share := float64(c.size) / took.Seconds() / 12_500_000
				there, stats := w.there.Stats(), w.a.Stats()
				t.Logf("%s, loss %.1f %%: %.1f %% of the link, queue mean %v most %v, lost %d of %d, datagram %d",
					c.control, c.loss*100, share*100, there.Queue, there.MaxQueue, stats.PacketsLost, stats.PacketsSent, stats.Datagram)
				if share < c.want {
					t.Errorf("got %.3f of the link, want %.2f", share, c.want)
				}
				if there.MaxQueue > c.queue {
					t.Errorf("queueing delay: got %v, want at most %v", there.MaxQueue, c.queue)
				}
			})
		})
	}
}

// TestNumbersTakenByTheCarrier lets packets of the carrier's own take numbers
// that the session had expected for its own.
func TestNumbersTakenByTheCarrier(t *testing.T) {
	path := broadband()
	path.Loss, path.Reorder = 0.02, 0.02
	inBubble(t, path, Config{}, func(w *world) {
		rng := rand.New(rand.NewPCG(5, 5))
		w.carA.setSteal(func() uint64 {
			if rng.IntN(3) > 0 {
				return 0
			}
			return 1 + rng.Uint64N(200)
		})
		size := uint64(30 << 20)
		if slowed {
			size /= 4
		}
		took := transfer(t, w.a, w.b, size)
		if share := float64(size) / took.Seconds() / 12_500_000; share < 0.5 && !slowed {
			t.Errorf("got %.2f of the link, want 0.5", share)
		}
		if got := w.a.Stats().InFlight; got != 0 {
			time.Sleep(time.Second)
			if got := w.a.Stats().InFlight; got != 0 {
				t.Errorf("%d bytes in flight at rest", got)
			}
		}
	})
}

package reliable

import (
	"fmt"
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
		loss float64
		want float64 // share of the link
	}{{0, 0.95}, {0.001, 0.92}, {0.01, 0.90}, {0.03, 0.80}} {
		t.Run(fmt.Sprintf("loss=%v", c.loss), func(t *testing.T) {
			path := broadband()
			path.Loss = c.loss
			inBubble(t, path, Config{}, func(w *world) {
				const size = 300 << 20
				took := transfer(t, w.a, w.b, size)
				share := size / took.Seconds() / 12_500_000
				there, stats := w.there.Stats(), w.a.Stats()
				t.Logf("loss %.1f %%: %.1f %% of the link, queue mean %v most %v, lost %d of %d, datagram %d",
					c.loss*100, share*100, there.Queue, there.MaxQueue, stats.PacketsLost, stats.PacketsSent, stats.Datagram)
				if share < c.want {
					t.Errorf("got %.3f of the link, want %.2f", share, c.want)
				}
				if there.MaxQueue > 100*time.Millisecond {
					t.Errorf("queueing delay: got %v, want under 100 ms", there.MaxQueue)
				}
			})
		})
	}
}

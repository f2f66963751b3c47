package reliable

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// contest is several flows over one link. The buffer is in round trips of it.
type contest struct {
	flows  []Congestion
	buffer float64
	loss   float64
	seed   uint64
	gap    time.Duration // from one flow's start to the next
	settle time.Duration // after the last one's, before it counts
	length time.Duration
}

// run returns the share of the link that each flow had, and what the link saw.
func (c contest) run(t *testing.T) (shares []float64, seen simnet.LinkStats) {
	t.Helper()
	shares = make([]float64, len(c.flows))
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(c.seed)
		path := broadband()
		path.Loss = c.loss
		path.Buffer = int(c.buffer * 2 * path.Delay.Seconds() * float64(path.Rate))
		there, back := net.Pair(path)
		back.Change(func(p *simnet.Path) { p.Loss = 0 })
		from, to := make([]*Session, len(c.flows)), make([]*Session, len(c.flows))
		var wg sync.WaitGroup
		for i, control := range c.flows {
			if i > 0 {
				time.Sleep(c.gap)
			}
			a, b := fmt.Sprintf("10.0.%d.1", i), fmt.Sprintf("10.0.%d.2", i)
			net.Join(a, b, there, back)
			connA, _ := net.Listen(a + ":1000")
			connB, _ := net.Listen(b + ":2000")
			from[i] = New(newPlain(connA, b+":2000"), Config{Initiator: true, Congestion: control})
			to[i] = New(newPlain(connB, a+":1000"), Config{Congestion: control})
			st, _ := from[i].OpenStream(context.Background())
			wg.Go(func() { io.Copy(struct{ io.Writer }{st}, &zeros{}) })
			wg.Go(func() {
				if in, err := to[i].AcceptStream(context.Background()); err == nil {
					io.Copy(io.Discard, struct{ io.Reader }{in})
				}
			})
		}
		time.Sleep(c.settle)
		there.ResetStats()
		before := make([]uint64, len(to))
		for i := range to {
			before[i] = to[i].Stats().BytesReceived
		}
		time.Sleep(c.length)
		for i := range to {
			shares[i] = float64(to[i].Stats().BytesReceived-before[i]) / c.length.Seconds() / float64(path.Rate)
		}
		seen = there.Stats()
		for i := range to {
			from[i].Close("test over")
			to[i].Close("test over")
		}
		wg.Wait()
		net.Close()
	})
	return shares, seen
}

// zeros is an endless source.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// percent writes shares as a reader wants them.
func percent(shares []float64) string {
	var b strings.Builder
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	for i, s := range shares {
		if i > 0 {
			b.WriteString(" / ")
		}
		fmt.Fprintf(&b, "%.0f", 100*s/sum)
	}
	fmt.Fprintf(&b, " %%; together %.0f %% of the link", 100*sum)
	return b.String()
}

// TestFairness lets flows share a link of 100 Mbit/s at 50 ms, alone and beside
// CUBIC, which behaves as a TCP does. ADIT_SOAK makes all of the table, each
// line for a minute.
func TestFairness(t *testing.T) {
	if slowed {
		t.Skip("too dear under the race detector")
	}
	together := []Congestion{BBR, CUBIC}
	for _, c := range []struct {
		contest
		least float64 // of what the flows move, for each of two; half of it for each of four
		short bool    // on a plain run too
	}{
		{contest{flows: together, buffer: 0.5}, 0.15, false},
		{contest{flows: []Congestion{CUBIC, BBR}, buffer: 0.5}, 0.15, false},
		{contest{flows: together, buffer: 1}, 0.2, true},
		{contest{flows: []Congestion{CUBIC, BBR}, buffer: 1}, 0.2, true},
		{contest{flows: together, buffer: 2}, 0.2, false},
		{contest{flows: []Congestion{CUBIC, BBR}, buffer: 2}, 0.2, false},
		{contest{flows: together, buffer: 5}, 0.2, false},
		{contest{flows: []Congestion{CUBIC, BBR}, buffer: 5}, 0.2, true},
		{contest{flows: together, buffer: 1, gap: 20 * time.Second}, 0.2, false},
		{contest{flows: []Congestion{CUBIC, BBR}, buffer: 1, gap: 20 * time.Second}, 0.2, false},
		{contest{flows: []Congestion{CUBIC, CUBIC}, buffer: 1, gap: 20 * time.Second}, 0.2, false},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 0.5}, 0.25, false},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 1}, 0.25, false},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 5}, 0.25, false},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 1, gap: 20 * time.Second}, 0.25, false},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 1, gap: 6 * time.Second}, 0.25, true},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 5, gap: 20 * time.Second}, 0.25, false},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 1, gap: 20 * time.Second, loss: 0.01}, 0.25, false},
		{contest{flows: []Congestion{BBR, BBR}, buffer: 5, gap: 20 * time.Second, loss: 0.03}, 0.25, false},
		{contest{flows: []Congestion{BBR, BBR, BBR, BBR}, buffer: 1, gap: 5 * time.Second}, 0.2, false},
		{contest{flows: []Congestion{BBR, BBR, BBR, BBR}, buffer: 5, gap: 5 * time.Second}, 0.2, false},
	} {
		long := os.Getenv("ADIT_SOAK") != ""
		if !long && !c.short {
			continue
		}
		c.seed = soakSeed(t)
		c.gap, c.settle, c.length = max(c.gap, 2*time.Second), 8*time.Second, 12*time.Second
		if long {
			c.length = time.Minute
		} else {
			c.least *= 0.6 // so short a time shows no more than that nobody starves
		}
		t.Run(fmt.Sprintf("%v/buffer=%v/gap=%v/loss=%v", c.flows, c.buffer, c.gap, c.loss), func(t *testing.T) {
			t.Parallel()
			got, seen := c.run(t)
			t.Logf("| %v | %v | %v | %.0f %% | %s | %v |", c.flows, c.buffer, c.gap, 100*c.loss, percent(got), seen.Queue.Round(time.Millisecond))
			sum := 0.0
			for _, s := range got {
				sum += s
			}
			if sum < 0.8 {
				t.Errorf("together %.2f of the link, want 0.8", sum)
			}
			if len(got) > 2 {
				c.least /= 2
			}
			for i, s := range got {
				if s < c.least*sum {
					t.Errorf("flow %d, %s: %.2f of what they move together, want %.2f", i, c.flows[i], s/sum, c.least)
				}
			}
		})
	}
}

// soakSeed draws the chances of the network. ADIT_SOAK_SEED is another one.
func soakSeed(t *testing.T) uint64 {
	text := os.Getenv("ADIT_SOAK_SEED")
	if text == "" {
		return 3
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ADIT_SOAK_SEED: %v", err)
	}
	return seed
}

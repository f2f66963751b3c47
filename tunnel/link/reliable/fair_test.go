package reliable

import (
	"context"
	"fmt"
	"io"
	"os"
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
	gap    time.Duration // from one flow's start to the next
	settle time.Duration // after the last one's, before it counts
	length time.Duration
}

// run returns the share of the link that each flow had, and what the link saw.
func (c contest) run(t *testing.T) (shares []float64, seen simnet.LinkStats) {
	t.Helper()
	shares = make([]float64, len(c.flows))
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(3)
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

func TestExperiment(t *testing.T) {
	if os.Getenv("EXPERIMENT") == "" {
		t.Skip()
	}
	for _, buffer := range []float64{0.5, 1, 2, 5} {
		for _, flows := range [][]Congestion{{BBR, CUBIC}, {CUBIC, BBR}} {
			t.Run(fmt.Sprint(buffer, flows), func(t *testing.T) {
				t.Parallel()
				got, seen := contest{flows: flows, buffer: buffer, gap: 2 * time.Second, settle: 8 * time.Second, length: time.Minute}.run(t)
				fmt.Printf("buffer %v %v: %s queue mean %v\n", buffer, flows, percent(got), seen.Queue)
			})
		}
	}
}

package reliable

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// TestBesideCubic shares a link between a session with BBR and one with CUBIC,
// which behaves as a TCP does.
func TestBesideCubic(t *testing.T) {
	buffers, length := []time.Duration{50 * time.Millisecond, 250 * time.Millisecond}, 12*time.Second
	if os.Getenv("ADIT_SOAK") != "" {
		buffers, length = append(buffers, 25*time.Millisecond, 100*time.Millisecond), time.Minute
	}
	if slowed {
		t.Skip("too dear under the race detector")
	}
	for _, buffer := range buffers {
		least := 0.2
		if buffer < 100*time.Millisecond {
			least = 0.04 // less than a round trip's worth: CUBIC is short of buffer by itself
		}
		for _, first := range []Congestion{BBR, CUBIC} {
			second := BBR
			if first == BBR {
				second = CUBIC
			}
			got := compete(t, buffer, length, first, second)
			total := got[0] + got[1]
			t.Logf("buffer %v: %s first %.0f %%, %s %.0f %%; both %.0f %% of the link", buffer,
				first, 100*got[0]/total, second, 100*got[1]/total, 100*total/12_500_000)
			if min(got[0], got[1]) < least*total {
				t.Errorf("buffer %v: %s %.2f, %s %.2f of what they move together; want %.2f for each", buffer, first, got[0]/total, second, got[1]/total, least)
			}
		}
	}
}

// compete returns the bytes a second of two flows over one link, the second of
// which begins 2 s later, between the 10th and the 70th second.
func compete(t *testing.T, buffer, length time.Duration, first, second Congestion) (rates [2]float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(3)
		path := broadband()
		path.Buffer = int(buffer.Seconds() * float64(path.Rate))
		there, back := net.Pair(path)
		var from, to [2]*Session
		var wg sync.WaitGroup
		for i, c := range []Congestion{first, second} {
			a, b := fmt.Sprintf("10.0.%d.1", i), fmt.Sprintf("10.0.%d.2", i)
			net.Join(a, b, there, back)
			connA, _ := net.Listen(a + ":1000")
			connB, _ := net.Listen(b + ":2000")
			from[i] = New(newPlain(connA, b+":2000"), Config{Initiator: true, Congestion: c})
			to[i] = New(newPlain(connB, a+":1000"), Config{Congestion: c})
			st, _ := from[i].OpenStream(context.Background())
			wg.Go(func() { io.Copy(struct{ io.Writer }{st}, &patternReader{left: 1 << 40}) })
			wg.Go(func() {
				if in, err := to[i].AcceptStream(context.Background()); err == nil {
					io.Copy(io.Discard, struct{ io.Reader }{in})
				}
			})
			time.Sleep(2 * time.Second)
		}
		time.Sleep(8 * time.Second)
		var before [2]uint64
		for i := range to {
			before[i] = to[i].Stats().BytesReceived
		}
		time.Sleep(length)
		for i := range to {
			rates[i] = float64(to[i].Stats().BytesReceived-before[i]) / length.Seconds()
		}
		for i := range to {
			from[i].Close("test over")
			to[i].Close("test over")
		}
		wg.Wait()
		net.Close()
	})
	return rates
}

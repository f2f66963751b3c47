package link

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// answerRequests answers each stream by its first byte: with 1,000 bytes, or
// with bytes without end.
func answerRequests(ctx context.Context, session Session) error {
	for {
		stream, err := session.AcceptStream(ctx)
		if err != nil {
			return nil // near has what it wanted
		}
		go func() {
			defer stream.Close()
			request := make([]byte, 100)
			if _, err := io.ReadFull(stream, request); err != nil {
				return
			}
			if request[0] == 'r' {
				stream.Write(make([]byte, 1000))
				return
			}
			for piece := make([]byte, 32<<10); ; {
				if _, err := stream.Write(piece); err != nil {
					return
				}
			}
		}()
	}
}

// makeRequests prints the median and the 99th percentile of the requests, in
// milliseconds, alone and beside bulk.
func makeRequests(ctx context.Context, session Session, c cell) error {
	ask := func(kind byte) (Stream, error) {
		stream, err := session.OpenStream(ctx)
		if err != nil {
			return nil, err
		}
		_, err = stream.Write(append([]byte{kind}, make([]byte, 99)...))
		return stream, err
	}
	round := func() error {
		took := make([]float64, 0, c.Requests)
		for range c.Requests {
			began := time.Now()
			stream, err := ask('r')
			if err != nil {
				return err
			}
			if _, err := io.ReadFull(stream, make([]byte, 1000)); err != nil {
				return err
			}
			took = append(took, time.Since(began).Seconds()*1000)
			stream.Close()
			<-time.After(17 * time.Millisecond)
		}
		slices.Sort(took)
		fmt.Printf("%.0f %.0f ", took[len(took)/2], took[len(took)*99/100])
		return nil
	}
	if err := round(); err != nil {
		return err
	}
	bulk, err := ask('b')
	if err != nil {
		return err
	}
	go io.Copy(onlyWriter{io.Discard}, onlyReader{bulk}) // until the process ends
	<-time.After(c.Warm)
	return round()
}

// TestSmallRequestsBesideBulkForReal makes small requests beside a download of
// the same session, over both transports and with the kernel's own buffers.
func TestSmallRequestsBesideBulkForReal(t *testing.T) {
	needImpairer(t)
	requests := 20
	if os.Getenv("ADIT_CALM") != "" {
		requests = 60
	}
	if os.Getenv("ADIT_SOAK") != "" {
		requests = 200
	}
	var table strings.Builder
	table.WriteString("| | alone, p50 | p99 | beside bulk, p50 | p99 |\n|---|---|---|---|---|\n")
	for _, peer := range []string{"dtls", "tls"} {
		out := cell{Peer: peer, Requests: requests, Warm: 3 * time.Second, Length: time.Minute}.run(t)
		var idle50, idle99, busy50, busy99 float64
		if _, err := fmt.Sscan(out, &idle50, &idle99, &busy50, &busy99); err != nil {
			t.Fatalf("%s: got %q, want four times: %v", peer, out, err)
		}
		fmt.Fprintf(&table, "| %s | %.0f ms | %.0f ms | %.0f ms | %.0f ms |\n", peer, idle50, idle99, busy50, busy99)
		// The tail is the machine's as much as the path's: the median is asserted.
		if limit := 2*idle50 + 50 + 500; busy50 > limit {
			t.Errorf("%s: the median beside bulk is %.0f ms, want at most %.0f", peer, busy50, limit)
		}
	}
	t.Logf("small requests at 50 ms:\n%s", table.String())
}

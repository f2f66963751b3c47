package agent

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"adit/tunnel/wire"
)

// TestEarlyAnswerReachesTheVisitor has an origin answer and close before it has
// read all that the visitor sends, as one does that refuses a large upload: the
// visitor gets the answer, and not only that something went wrong.
func TestEarlyAnswerReachesTheVisitor(t *testing.T) {
	const answer = "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlots"
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	port := origin(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, answer) // closed with much unread: it resets
		}
	})
	tun := mustCreate(t, a, TunnelSpec{Type: "http", LocalPort: port})
	body := strings.Repeat("x", 1<<20)
	for i := range 50 {
		s := r.mustVisit(tun.ID, wire.StreamHTTP)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = io.WriteString(s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
			for range 20 {
				if _, err := io.WriteString(s, body); err != nil {
					return
				}
			}
		})
		got := make([]byte, len(answer))
		n, err := io.ReadFull(s, got)
		if string(got[:n]) != answer {
			t.Errorf("visitor %d: got %q, %v", i, got[:n], err)
		}
		s.Reset()
		wg.Wait()
	}
}

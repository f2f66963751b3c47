package relay

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRequestThatBreaksItsConnectionIsRepeatedOnce uses an origin whose process ends
// whenever a certain page is requested, while other connections are kept. A single
// visitor must not end them all.
func TestRequestThatBreaksItsConnectionIsRepeatedOnce(t *testing.T) {
	const kept = 8
	var asked sync.WaitGroup
	asked.Add(kept)
	var crashes atomic.Int32
	url, visitor := rawSite(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if req.URL.Path == "/crash" {
				crashes.Add(1)
				return
			}
			asked.Done()
			asked.Wait()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	var all sync.WaitGroup
	for range kept {
		all.Go(func() {
			if resp, err := visitor.Get(url); err != nil {
				t.Error(err)
			} else {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	if status, _ := get(t, visitor, url+"/crash"); status != http.StatusBadGateway || crashes.Load() > 2 {
		t.Errorf("got %d after %d tries, want 502 after 2 at most", status, crashes.Load())
	}
}

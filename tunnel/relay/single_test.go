package relay

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// oneAtATime starts an origin that accepts one connection at a time and keeps it until
// the other end closes it, as devices and some development servers do.
func oneAtATime(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { ln.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			for r := bufio.NewReader(conn); ; {
				req, err := http.ReadRequest(r)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, req.Body)
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
			}
			conn.Close()
		}
	})
	return ln.Addr().String()
}

// TestAnOriginThatHasOneConnectionAtATimeServesAll checks that connections kept for the
// next request make room for requests that wait.
func TestAnOriginThatHasOneConnectionAtATimeServesAll(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	url := a.mustClaim("t", wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: "shop"}, oneAtATime(t)).PublicURL
	begin := time.Now()
	var visitors sync.WaitGroup
	for range 4 {
		visitor := r.visitor(t)
		visitors.Go(func() {
			if status, body := get(t, visitor, url); status != http.StatusOK || body != "hello" {
				t.Errorf("got %d %q", status, body)
			}
		})
	}
	visitors.Wait()
	if took := time.Since(begin); took >= 4*time.Second { // for which each is kept
		t.Errorf("all were served after %v", took)
	}
}

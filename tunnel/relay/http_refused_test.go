package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A length beside chunks is TestOneRequestStaysOne's: what follows the chunks is
// a request of its own there.
func TestRequestsThatTwoServersMightReadDifferently(t *testing.T) {
	var smuggled atomic.Bool
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/smuggled" {
			smuggled.Store(true)
		}
		io.Copy(io.Discard, r.Body)
	}))
	for name, raw := range map[string]string{
		"two lengths":          "POST /ok HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
		"odd encoding":         "POST /ok HTTP/1.1\r\nHost: shop.relay.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"space before colon":   "POST /ok HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length : 5\r\n\r\nhello",
		"two hosts":            "GET /ok HTTP/1.1\r\nHost: shop.relay.test\r\nHost: other.relay.test\r\n\r\n",
		"host with a path":     "GET /ok HTTP/1.1\r\nHost: shop.relay.test/x\r\n\r\n",
		"no host":              "GET /ok HTTP/1.1\r\n\r\n",
		"folded header":        "GET /ok HTTP/1.1\r\nHost: shop.relay.test\r\n X: y\r\n\r\n",
		"length with a sign":   "POST /ok HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length: +5\r\n\r\nhello",
		"chunk with no length": "POST /ok HTTP/1.1\r\nHost: shop.relay.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		io.WriteString(conn, raw)
		conn.(*net.TCPConn).CloseWrite()
		answer, err := io.ReadAll(conn)
		conn.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		status := ""
		if len(answer) > 12 {
			status = string(answer[9:12])
		}
		if !strings.HasPrefix(status, "4") && !strings.HasPrefix(status, "5") {
			t.Errorf("%s: %q", name, answer)
		}
	}
	if smuggled.Load() {
		t.Error("a smuggled request reached the origin")
	}
}

func TestSlowAndLargeHeadersAreRefused(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.HeaderTime, cfg.Limits.HeaderBytes, cfg.Limits.ConnectionsPerAddress = "300ms", 4096, 8
	s := startSite(t, cfg, text("served"))
	slow, err := net.Dial("tcp", hostOf(t, s.http))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	io.WriteString(slow, "GET / HTTP/1.1\r\nHost: shop.rel")
	slow.SetDeadline(time.Now().Add(patience))
	if _, err := io.ReadAll(slow); err != nil {
		t.Errorf("a slow header: %v, want the end", err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http, nil)
	req.Header.Set("X-Large", strings.Repeat("x", 20_000))
	eventually(t, "a large header is refused", func() bool {
		resp, err := s.visitor.Do(req)
		if err != nil {
			return false // on a machine that stands still it was a slow one too
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Fatalf("a large header: status %d", resp.StatusCode)
		}
		return true
	})
	s.visitor.CloseIdleConnections()
	eventually(t, "no visitor is left", func() bool {
		var held []net.Conn
		defer func() {
			for _, c := range held {
				c.Close()
			}
		}()
		for range 8 {
			c, err := net.Dial("tcp", hostOf(t, s.http))
			if err != nil {
				return false
			}
			held = append(held, c)
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n")
			c.SetDeadline(time.Now().Add(patience))
			if line, _ := lines(c)(); !strings.Contains(line, "200") {
				return false
			}
		}
		// The ninth is one too many.
		c, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			return false
		}
		defer c.Close()
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n")
		c.SetDeadline(time.Now().Add(patience))
		_, err = lines(c)()
		return err != nil
	})
}

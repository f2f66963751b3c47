package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// A length together with chunks is covered by TestOneRequestStaysOne, since what follows
// the chunks is a separate request there.
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

// An invalid body is the visitor's fault, and not a failure of the site.
func TestBodiesThatAreNoneAreTheVisitorsFault(t *testing.T) {
	origin := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	s := startSite(t, testConfig(t.TempDir()), origin)
	h2c := s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTP, Domain: "h2c", HTTP2: true}, startH2C(t, origin)).PublicURL
	for name, url := range map[string]string{"by HTTP/1.1": s.http, "by HTTP/2": h2c} {
		for body, want := range map[string]int{"5\r\nhello\r\n0\r\n\r\n": 200, "5\r\nhello\r\nzz\r\n": 400, "zz\r\n": 400, "5\r\nhelloXX": 400} {
			conn, err := net.Dial("tcp", hostOf(t, url))
			if err != nil {
				t.Fatal(err)
			}
			conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n%s", strings.TrimPrefix(url, "http://"), body)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s, %q: %v", name, body, err)
			}
			if resp.StatusCode != want || resp.Close != (want != 200) {
				t.Errorf("%s, %q: status %d, and the connection ends: %v; want %d", name, body, resp.StatusCode, resp.Close, want)
			}
			conn.Close()
			recorded(t, s.Relay, name, func(e wire.Access) bool { return e.Status == want })
		}
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

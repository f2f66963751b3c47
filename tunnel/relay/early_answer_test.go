package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// slowly yields n bytes, one after another, in a third of a second.
func slowly(n int) io.Reader {
	out, in := io.Pipe()
	go func() {
		pace := time.NewTicker(time.Second / 3 / time.Duration(n))
		defer pace.Stop()
		for range n {
			<-pace.C
			io.WriteString(in, "x")
		}
		in.Close()
	}()
	return out
}

// TestUploadGoesOnBehindItsAnswer uses an origin that answers immediately but still reads
// the body, like handlers that write it to a file in the meantime. The origin must get
// the whole body, and the connections must be usable afterwards.
func TestUploadGoesOnBehindItsAnswer(t *testing.T) {
	const size = 20
	s := startSite(t, testConfig(t.TempDir()), text(""))
	answers := map[string]string{
		"length":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"chunks":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"redirect": "HTTP/1.1 303 See Other\r\nLocation: /\r\nContent-Length: 2\r\n\r\nok",
	}
	bodies := map[string]<-chan int64{}
	for domain, answer := range answers {
		got := make(chan int64, 8)
		addr := hasty(t, answer, func(n int64) { got <- n })
		s.agent.mustClaim(domain, wire.Claim{Type: wire.TypeHTTP, Domain: domain}, addr)
		s.agent.mustClaim(domain+"-tls", wire.Claim{Type: wire.TypeHTTPS, Domain: domain}, addr)
		bodies[domain] = got
	}
	came := func(t *testing.T, domain string, want int64) {
		t.Helper()
		select {
		case n := <-bodies[domain]:
			if n != want {
				t.Errorf("the origin had %d bytes, want %d", n, want)
			}
		case <-time.After(patience):
			t.Error("the origin still waits")
		}
	}
	for domain := range answers {
		t.Run("HTTP/1.1 "+domain, func(t *testing.T) {
			conn, err := net.Dial("tcp", hostOf(t, s.http))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			br := bufio.NewReader(conn)
			answered := func() {
				t.Helper()
				resp, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 400 || string(body) != "ok" {
					t.Errorf("got status %d, %v, %.300q", resp.StatusCode, err, body)
				}
			}
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s.relay.test\r\nContent-Length: %d\r\n\r\n", domain, size)
			if domain != "chunks" { // whose end comes behind the body
				answered()
			}
			io.Copy(conn, slowly(size))
			if domain == "chunks" {
				answered()
			}
			came(t, domain, size)
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s.relay.test\r\n\r\n", domain)
			answered()
			came(t, domain, 0)
		})
	}
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		if version == "HTTP/1.1" {
			continue // Go's client gives its own body up there
		}
		for _, domain := range []string{"length", "chunks"} {
			t.Run(version+" "+domain, func(t *testing.T) {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+domain+".relay.test/", slowly(size))
				resp, err := visitor.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
					t.Errorf("got status %d, %v, %.300q", resp.StatusCode, err, body)
				}
				came(t, domain, size)
			})
		}
	}
}

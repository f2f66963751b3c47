package relay

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/wire"
)

// hasty starts an origin that answers each request before it reads the body. It calls
// read, if that is set, with the number of bytes that arrived.
func hasty(t *testing.T, answer string, read func(int64)) string {
	t.Helper()
	return serveEach(t, func(conn net.Conn) {
		br := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			io.WriteString(conn, answer)
			n, err := io.Copy(io.Discard, r.Body)
			if read != nil {
				read(n)
			}
			if err != nil {
				return
			}
		}
	})
}

// TestBodyBehindItsAnswerIsNoRequest makes visitors send a request's body after its
// answer has come. Whatever the body contains, it must never be read as a separate
// request: a load balancer sends other visitors' requests on the same connection.
func TestBodyBehindItsAnswerIsNoRequest(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/last" {
			t.Errorf("%s was served", r.URL.Path)
		}
	}))
	for domain, origin := range map[string]string{
		"down":   "127.0.0.1:1",
		"length": hasty(t, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", nil),
		"chunks": hasty(t, "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", nil),
		"change": hasty(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n", nil),
	} {
		s.agent.mustClaim(domain, wire.Claim{Type: wire.TypeHTTP, Domain: domain}, origin)
	}
	s.agent.mustClaim("down2", wire.Claim{Type: wire.TypeHTTP, Domain: "down2", HTTP2: true}, "127.0.0.1:1")
	early := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "no")
	}), Protocols: new(http.Protocols)}
	early.Protocols.SetUnencryptedHTTP2(true)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go early.Serve(ln)
	t.Cleanup(func() { early.Close() })
	s.agent.mustClaim("early2", wire.Claim{Type: wire.TypeHTTP, Domain: "early2", HTTP2: true}, ln.Addr().String())
	length := fmt.Sprintf("Content-Length: %d\r\n", len(smuggled))
	for _, c := range []struct {
		name, domain, head string
		status             int
		atOnce             bool // the body is not held back: an answer by HTTP/2 waits for some of it
	}{
		{"origin down", "down", length, 502, false},
		{"origin down, chunks", "down", "Transfer-Encoding: chunked\r\n", 502, false},
		{"origin down, asked before", "down", length + "Expect: 100-continue\r\n", 502, false},
		{"origin down, JSON", "down", length + "Accept: application/json\r\n", 502, false},
		{"answered", "length", length, 403, false},
		{"answered, chunks", "length", "Transfer-Encoding: chunked\r\n", 403, false},
		{"answered, asked before", "length", length + "Expect: 100-continue\r\n", 403, false},
		{"answered in chunks", "chunks", length, 403, false},
		{"origin down by HTTP/2", "down2", length, 502, true},
		{"answered by HTTP/2", "early2", length, 403, true},
		{"a change of protocol", "change", length + "Connection: Upgrade\r\nUpgrade: chat\r\n", 502, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", hostOf(t, s.http))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "POST /ok HTTP/1.1\r\nHost: %s.relay.test\r\n%s\r\n", c.domain, c.head)
			hidden := smuggled
			if c.atOnce {
				io.WriteString(conn, hidden)
				hidden = ""
			}
			br := bufio.NewReader(conn)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status {
				t.Errorf("got status %d, %v, %.300s; want %d", resp.StatusCode, err, body, c.status)
			}
			io.WriteString(conn, hidden+"GET /last HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n")
			rest, _ := io.ReadAll(br) // the connection may have ended before, in any way
			if strings.Count(string(rest), "HTTP/1.1") > 1 {
				t.Errorf("the body was answered: %.1000q", rest)
			}
		})
	}
}

// TestLargeUploadLearnsWhyItIsRefused makes a visitor send much more than any buffer
// holds before it looks for the answer, as browsers do.
func TestLargeUploadLearnsWhyItIsRefused(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("down", wire.Claim{Type: wire.TypeHTTP, Domain: "down"}, "127.0.0.1:1")
	s.agent.mustClaim("length", wire.Claim{Type: wire.TypeHTTP, Domain: "length"}, hasty(t, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", nil))
	for domain, status := range map[string]int{"down": 502, "length": 413} {
		t.Run(domain, func(t *testing.T) {
			conn, err := net.Dial("tcp", hostOf(t, s.http))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			const size = 32 << 20
			fmt.Fprintf(conn, "POST /ok HTTP/1.1\r\nHost: %s.relay.test\r\nContent-Length: %d\r\n\r\n", domain, size)
			if n, err := conn.Write(make([]byte, size)); err != nil {
				t.Errorf("the connection broke after %d bytes: %v", n, err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != status {
				t.Errorf("got status %d, %v, %.300s; want %d", resp.StatusCode, err, body, status)
			}
		})
	}
}

// TestRefusedUploadEndsAtOnce uses visitors that stop sending a body once its answer has
// begun, and wait for the end of the answer, as Go's client does over HTTP/2.
func TestRefusedUploadEndsAtOnce(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("full", wire.Claim{Type: wire.TypeHTTPS, Domain: "full"}, hasty(t, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", nil))
	for version, sends := range s.secureVisitors(t, s.testRelay) {
		if version == "HTTP/1.1" {
			continue // there the connection ends with the answer
		}
		more, end := io.Pipe()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://full.relay.test/", io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), more))
		r.ContentLength = 2 << 20
		resp, err := sends.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		begun := time.Now()
		body, err := io.ReadAll(resp.Body)
		took := time.Since(begun)
		end.Close() // which closing the answer waits for
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "no" || took > visitor.LingerTime/2 {
			t.Errorf("%s: got status %d, %q, %v, ended after %v", version, resp.StatusCode, body, err, took)
		}
	}
}

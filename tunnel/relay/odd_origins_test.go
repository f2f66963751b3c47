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

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"adit/tunnel/wire"
)

// answering starts an origin that reads a request and sends answer.
func answering(t *testing.T, answer string) string {
	return rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			io.WriteString(conn, answer)
			io.Copy(io.Discard, req.Body) // a connection that ends with bytes unread may lose the answer
		}
	})
}

// TestInterimAnswersFitTheVisitor uses an origin that sends hints before its answer, with
// fields that are meant only for the edge. A visitor over HTTP/1.0 does not understand
// interim answers (RFC 9110, section 15.2).
func TestInterimAnswersFitTheVisitor(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, answering(t,
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: secret\r\nKeep-Alive: timeout=5\r\n\r\n"+
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
	for _, c := range []struct{ name, request, want string }{
		{"HTTP/1.1", "GET / HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n"},
		{"HTTP/1.0", "GET / HTTP/1.0\r\nHost: shop.relay.test\r\n\r\n", "HTTP/1.0 200 OK\r\n"},
		{"HTTP/1.0 that expects", "POST / HTTP/1.0\r\nHost: shop.relay.test\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", "HTTP/1.0 200 OK\r\n"},
	} {
		if _, got := exchange(t, hostOf(t, s.http), c.request); !strings.HasPrefix(got, c.want) || !strings.HasSuffix(got, "\r\n\r\nok") {
			t.Errorf("%s: got %q, want it to begin with %q", c.name, got, c.want)
		}
	}
}

// TestStatusThatIsNone uses origins whose answers have a status that no version of HTTP
// can pass on.
func TestStatusThatIsNone(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	for _, line := range []string{"099 Odd", "000 Odd", "+99 Odd", "-01 Odd"} {
		g := s.agent.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, answering(t, "HTTP/1.1 "+line+"\r\nContent-Length: 2\r\n\r\nok"))
		for name, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
			resp, err := visitor.Get(g.PublicURL)
			if err != nil {
				t.Errorf("%s, %s: %v", line, name, err)
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadGateway {
				t.Errorf("%s, %s: status %d", line, name, resp.StatusCode)
			}
		}
	}
	g := s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTPS, Domain: "h2c", HTTP2: true}, rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		io.ReadFull(r, make([]byte, len(http2.ClientPreface)))
		framer := http2.NewFramer(conn, r)
		framer.WriteSettings()
		for {
			f, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if f, ok := f.(*http2.HeadersFrame); ok {
				var block bytes.Buffer
				hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "099"})
				framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
			}
		}
	}))
	if status, _ := get(t, s.visitor, g.PublicURL); status != http.StatusBadGateway {
		t.Errorf("by HTTP/2 from the origin: status %d", status)
	}
}

// TestFieldsThatAreNoneAreLeftOut uses an origin that sends a field name with a space in
// it, which some servers let pass. Over HTTP/3 it would break the answer.
func TestFieldsThatAreNoneAreLeftOut(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	const fields = "Bad Name: x\r\nContent-Type : text/odd\r\nX-Good: y\r\n"
	g := s.agent.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, answering(t,
		"HTTP/1.1 103 Early Hints\r\n"+fields+"\r\nHTTP/1.1 200 OK\r\n"+fields+"Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX Odd: 1\r\nX-Sum: 2\r\n\r\n"))
	for name, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		resp, err := getWithTrailers(t, visitor, g.PublicURL)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "ok" || resp.Header.Get("X-Good") != "y" || resp.Trailer.Get("X-Sum") != "2" {
			t.Errorf("%s: got %q, %v with %v and behind it %v", name, body, err, resp.Header, resp.Trailer)
		}
		for field := range resp.Header {
			if strings.Contains(field, " ") {
				t.Errorf("%s: got the field %q", name, field)
			}
		}
	}
}

// TestOriginThatSaysMoreThanItAnnounced uses an origin that sends unrequested bytes after
// its answer. The next visitor must not get them.
func TestOriginThatSaysMoreThanItAnnounced(t *testing.T) {
	for name, extra := range map[string]string{
		"another answer": "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
		"a longer body":  "poison",
		"an empty line":  "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			url, visitor := rawSite(t, func(_ int, conn net.Conn, r *bufio.Reader) {
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					body := "ok"
					if req.Method == http.MethodHead {
						body = ""
					}
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"+body+extra)
				}
			})
			served := 0
			for range 20 {
				resp, err := visitor.Head(url)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				status, body := get(t, visitor, url)
				switch {
				case status == 200 && body == "ok":
					served++
				case status != http.StatusBadGateway: // what came late was taken for its answer, and is none
					t.Fatalf("got %d %q", status, body)
				}
			}
			if served == 0 {
				t.Error("nobody is served")
			}
		})
	}
}

// TestOriginThatSaysLess uses an origin that ends before the length that it announced.
// The visitor must notice that, over each version of HTTP.
func TestOriginThatSaysLess(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	g := s.agent.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"))
	for name, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		visitor.Timeout = patience
		start := time.Now()
		resp, err := visitor.Get(g.PublicURL)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil || time.Since(start) >= patience {
			t.Errorf("%s: got %v after %v, want an end that is seen", name, err, time.Since(start))
		}
	}
}

// TestBodiesGoToTheOriginThatIsThere shares an address between an HTTP/2 origin that is
// running and one that is not. Requests with bodies go to the first, complete.
func TestBodiesGoToTheOriginThatIsThere(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	live := startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %v", len(body), err)
	}))
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "both", Mode: wire.ModeBalanced, HTTP2: true}
	s.agent.mustClaim("live", claim, live)
	for range 12 {
		// A tunnel that is claimed anew is in turn again.
		url := s.agent.mustClaim("down", claim, "127.0.0.1:1").PublicURL
		for _, body := range []io.Reader{strings.NewReader("known length"), io.MultiReader(strings.NewReader("other length"))} {
			resp, err := s.visitor.Post(url, "text/plain", body)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 || string(got) != "12 <nil>" {
				t.Errorf("got %d %.40q", resp.StatusCode, got)
			}
		}
	}
}

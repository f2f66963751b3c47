package relay

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// startDeaf starts an origin that does not look for a body after a request, as Python's
// http.server does for GET: whatever follows is its next request.
func startDeaf(tb testing.TB) string {
	tb.Helper()
	return serveEach(tb, func(conn net.Conn) {
		for r := textproto.NewReader(bufio.NewReader(conn)); ; {
			line, err := r.ReadLine()
			if err != nil {
				return
			}
			if _, err := r.ReadMIMEHeader(); err != nil {
				return
			}
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(line), line)
		}
	})
}

// TestNoVisitorHasTheRestOfAnothersRequest covers bytes that the origin did not treat as
// part of the body.
func TestNoVisitorHasTheRestOfAnothersRequest(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("origin"))
	site := s.agent.mustClaim("deaf", wire.Claim{Type: wire.TypeHTTPS, Domain: "deaf"}, startDeaf(t)).PublicURL
	for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodDelete, http.MethodTrace} {
		req, err := http.NewRequestWithContext(t.Context(), method, site+"/first", strings.NewReader("GET /smuggled HTTP/1.1\r\nX: "))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, body := get(t, s.visitor, site+"/next"); !strings.HasPrefix(body, "GET /next ") {
			t.Errorf("behind %s the next visitor is answered as who asks %q", method, body)
		}
	}
}

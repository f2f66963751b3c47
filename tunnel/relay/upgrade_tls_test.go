package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestChangeToTLSHidesNoRequest makes a visitor ask a service that accepts requests
// inside TLS (RFC 2817) for something that only a webhook may request.
func TestChangeToTLSHidesNoRequest(t *testing.T) {
	hidden := make(chan string, 1)
	origin := rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if req.Header.Get("Upgrade") == "" {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nplain")
			return
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n")
		// Without the encryption, which is of no matter here.
		if req, err := http.ReadRequest(r); err == nil {
			hidden <- req.URL.Path
		}
	})
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("printer", wire.Claim{Type: wire.TypeHTTP, Domain: "printer"}, origin)
	s.setPolicy(t, "printer", `{"webhooks":[{"path":"/hooks","provider":"github","secrets":["a long random text"]}]}`)
	for _, protocol := range []string{"TLS/1.0", "TLS/1.0, HTTP/1.1"} {
		_, got := exchange(t, hostOf(t, s.http), fmt.Sprintf("OPTIONS / HTTP/1.1\r\nHost: printer.relay.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\nPOST /hooks HTTP/1.1\r\nHost: printer.relay.test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", protocol))
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK") || !strings.Contains(got, "HTTP/1.1 401 Unauthorized") {
			t.Errorf("%s: got %q", protocol, got)
		}
	}
	select {
	case path := <-hidden:
		t.Errorf("the origin was asked for %s", path)
	default:
	}
}

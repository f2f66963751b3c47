package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestFieldsThatConnectionNamesGoNoFurther makes origin and visitor name fields that are
// meant only for the edge, in addition to the option that ends the connection (RFC 9110,
// section 7.6.1).
func TestFieldsThatConnectionNamesGoNoFurther(t *testing.T) {
	asked := make(chan string, 1)
	const fields = "Connection: close, X-Hop, X-Sum\r\nX-Hop: secret\r\nX-Kept: kept\r\n"
	origin := rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		var all strings.Builder
		if req, err := http.ReadRequest(r); err == nil {
			io.Copy(io.Discard, req.Body)
			req.Header.Write(&all)
			req.Trailer.Write(&all)
			io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n"+fields+"\r\nHTTP/1.1 200 OK\r\nX-Long: "+strings.Repeat("x", 10_000)+"\r\n"+fields+
				"Trailer: X-Sum, X-Good\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: secret\r\nX-Good: kept\r\n\r\n")
		}
		asked <- all.String()
	})
	s := startSite(t, testConfig(t.TempDir()), text(""))
	g := s.agent.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, origin)
	s.agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, origin)
	s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTP, Domain: "h2c", HTTP2: true}, startH2C(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var all strings.Builder
		io.Copy(io.Discard, r.Body)
		r.Header.Write(&all)
		r.Trailer.Write(&all)
		asked <- all.String()
	})))

	for _, name := range []string{"shop", "h2c"} {
		conn, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: "+name+".relay.test\r\n"+fields+
			"Trailer: X-Sum, X-Good\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: secret\r\nX-Good: kept\r\n\r\n")
		got, err := io.ReadAll(conn)
		conn.Close()
		if err != nil || name == "shop" && strings.Count(string(got), "kept") != 3 || strings.Contains(string(got), "secret") {
			t.Errorf("the visitor got %.300q, %v", got, err)
		}
		if got := <-asked; strings.Contains(got, "secret") || strings.Count(got, "kept") != 2 {
			t.Errorf("the origin %s got %q", name, got)
		}
	}
	for name, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		resp, err := getWithTrailers(t, visitor, g.PublicURL)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		<-asked
		all := fmt.Sprint(resp.Header, resp.Trailer)
		if err != nil || string(body) != "ok" || strings.Contains(all, "secret") || strings.Count(all, "kept") != 2 {
			t.Errorf("%s: got %q, %v, with %.300s", name, body, err, all)
		}
	}
}

package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"adit/tunnel/wire"
)

// TestSignInOfAConnectionIsItsVisitors has an origin that takes all requests of a
// connection for those of who signed in by it, as servers with NTLM do (RFC 4559, section
// 6). A visitor stays signed in, and is so for nobody else.
func TestSignInOfAConnectionIsItsVisitors(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	origin := rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		user := "nobody"
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if a := req.Header.Get("Authorization"); a != "" {
				user = a
			}
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(user), user)
		}
	})
	url := s.agent.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "signs"}, origin).PublicURL
	first, second := &http.Client{Transport: s.visitor.Transport.(*http.Transport).Clone()}, &http.Client{Transport: s.visitor.Transport.(*http.Transport).Clone()}
	ask := func(visitor *http.Client, authorization, want string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); string(body) != want || err != nil {
			t.Errorf("got %q %v, want %q", body, err, want)
		}
	}
	ask(second, "", "nobody")
	ask(first, "NTLM ann", "NTLM ann")
	ask(second, "", "nobody")
	ask(first, "", "NTLM ann")
	ask(second, "negotiate bob", "negotiate bob")
	ask(first, "", "NTLM ann")
	ask(second, "", "negotiate bob")
}

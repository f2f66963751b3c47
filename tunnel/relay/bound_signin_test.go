package relay

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/tunnel/wire"
)

// signsIn starts an origin that says who has signed in on a connection.
func signsIn(t *testing.T) string {
	t.Helper()
	return rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
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
}

// TestSignInOfAConnectionIsItsVisitors uses an origin that attributes all requests on a
// connection to whoever signed in on it, as servers with NTLM do (RFC 4559, section 6). A
// visitor stays signed in, and nobody else is.
func TestSignInOfAConnectionIsItsVisitors(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	url := s.agent.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "signs"}, signsIn(t)).PublicURL
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

// TestSignInOfAConnectionEndsWithItsVisitor checks that somebody who uses the port that a
// visitor had a moment ago, as another user of the same machine can, is not signed in.
func TestSignInOfAConnectionEndsWithItsVisitor(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "signs"}, signsIn(t))
	from, err := net.ResolveTCPAddr("tcp", freeport.Loopback(t)) // which nobody else takes meanwhile
	if err != nil {
		t.Fatal(err)
	}
	ask := func(header, want string) {
		t.Helper()
		conn, err := (&net.Dialer{LocalAddr: from}).DialContext(t.Context(), "tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetLinger(0) // the port is free at once
		_ = conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: signs.relay.test\r\n%s\r\n", header)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != want || err != nil {
			t.Errorf("got %q %v, want %q", body, err, want)
		}
	}
	ask("Authorization: NTLM ann\r\n", "NTLM ann")
	ask("", "nobody")
}

// TestStepsOfASignInFindTheirConnection makes a visitor send other requests while it
// signs in, as browsers do over HTTP/2. The origin treats each connection separately, as
// servers with NTLM do.
func TestStepsOfASignInFindTheirConnection(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	var asked atomic.Int64
	ntlm := func(kind byte, of string) string {
		return "NTLM " + base64.StdEncoding.EncodeToString([]byte("NTLMSSP\x00"+string([]byte{kind, 0, 0, 0})+of))
	}
	url := s.agent.mustClaim("signs", wire.Claim{Type: wire.TypeHTTPS, Domain: "signs"}, rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		challenge, signed := "", false
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			next := "NTLM"
			switch a := req.Header.Get("Authorization"); {
			case a == ntlm(1, ""):
				challenge, signed = fmt.Sprint("challenge ", asked.Add(1)), false
				next = ntlm(2, challenge)
			case a != "":
				signed = challenge != "" && a == ntlm(3, challenge)
				challenge = ""
			default:
				challenge = ""
			}
			if signed {
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			} else {
				fmt.Fprintf(conn, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: %s\r\nContent-Length: 0\r\n\r\n", next)
			}
		}
	})).PublicURL
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		ask := func(authorization string, want int) (challenge string) {
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
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s: %q: got status %d, want %d", version, authorization, resp.StatusCode, want)
			}
			b, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(resp.Header.Get("WWW-Authenticate"), "NTLM "))
			return string(b[min(12, len(b)):])
		}
		one := ask(ntlm(1, ""), 401)
		ask("", 401)
		two := ask(ntlm(1, ""), 401)
		ask(ntlm(3, one), 200)
		ask("", 200)
		ask(ntlm(3, two), 200)
		ask("", 200)
	}
}

// TestSignInOfAConnectionStaysWithItsAgent checks this for agents that share a name.
func TestSignInOfAConnectionStaysWithItsAgent(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token, url := r.client(t, "shop"), ""
	for i := range 3 {
		url = connect(t, token, fmt.Sprint("i", i)).mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shared", Mode: wire.ModeBalanced}, signsIn(t)).PublicURL
	}
	visitor := r.visitor(t)
	for i := range 9 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			req.Header.Set("Authorization", "NTLM ann")
		}
		resp, err := visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "NTLM ann" || err != nil {
			t.Errorf("request %d: got %q %v", i, body, err)
		}
	}
}

// TestSignInOfAConnectionGoesOnBehindAnUpload uses an origin that asks for the next step
// of a sign-in before it has read the body of the last one, as servers with NTLM do when
// visitors send the body with every step.
func TestSignInOfAConnectionGoesOnBehindAnUpload(t *testing.T) {
	const size = 20
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "signs"}, rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		for asked := false; ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			last := req.Header.Get("Authorization") == "NTLM last"
			if !last {
				fmt.Fprint(conn, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM challenge\r\nContent-Length: 0\r\n\r\n")
			}
			if n, err := io.Copy(io.Discard, req.Body); n != size || err != nil {
				return
			}
			if last {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%-5t", asked)
			}
			asked = true
		}
	}))
	conn, err := net.Dial("tcp", hostOf(t, s.http))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	br := bufio.NewReader(conn)
	answer := func() (int, string) {
		t.Helper()
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	begin := func(step string) {
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: signs.relay.test\r\nAuthorization: NTLM %s\r\nContent-Length: %d\r\n\r\n", step, size)
	}
	begin("first")
	if status, _ := answer(); status != http.StatusUnauthorized {
		t.Fatalf("got status %d", status)
	}
	if _, err := io.Copy(conn, slowly(size)); err != nil {
		t.Fatal(err)
	}
	begin("last")
	if _, err := io.Copy(conn, slowly(size)); err != nil {
		t.Fatal(err)
	}
	if status, by := answer(); status != http.StatusOK || by != "true " {
		t.Errorf("the last step: got status %d, by the connection of the first: %s", status, by)
	}
}

package relay

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"adit/tunnel/wire"
)

// TestTargetsPassAsTheyAre requests paths that a proxy may be tempted to normalise. An
// origin that distinguishes %2F from / must get what the visitor wrote (RFC 9112, section
// 3.2), and anything that cannot be a target of an origin is refused.
func TestTargetsPassAsTheyAre(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "<%s %s>", r.Host, r.RequestURI) })
	s := startSite(t, testConfig(t.TempDir()), echo)
	s.agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<%s %s>", req.Host, req.RequestURI)
		}
	}))
	s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTP, Domain: "h2c", HTTP2: true}, startH2C(t, echo))
	type row struct{ method, target, want string } // want: what the origin gets; "" if it is refused
	rows := []row{
		{"GET", "/", "/"},
		{"GET", "/?", "/?"},
		{"GET", "/a%2fb|c", "/a%2fb|c"},
		{"GET", `/a%2Fb"<>\^{}[]`, `/a%2Fb"<>\^{}[]`},
		{"GET", "/a/../b/./c", "/a/../b/./c"},
		{"GET", "/%2e%2e/%2E", "/%2e%2e/%2E"},
		{"GET", "/a;b=c//d;e", "/a;b=c//d;e"},
		{"GET", "//other.example/a|b%2f", "//other.example/a|b%2f"},
		{"GET", "/a?b=%zz&c;d=|", "/a?b=%zz&c;d=|"},
		{"GET", "/a%2f\xc3\xa9", "/a%2f%C3%A9"},
		{"GET", "/a%2fb#c", "/a%2fb%23c"},
		{"OPTIONS", "*", "*"},
		{"GET", "*", ""},
		{"GET", "mailto:x", ""},
	}
	for _, name := range []string{"shop", "h2c"} {
		for _, c := range slices.Concat(rows, []row{
			{"GET", "http://HOST", "/"},
			{"GET", "http://HOST?a=b", "/?a=b"},
			{"GET", "http://HOST/a%2fb|c", "/a%2fb|c"},
			{"GET", "http:.other.example/", ""},
			{"OPTIONS", "http://HOST", "*"},
		}) {
			host := name + ".relay.test"
			target := strings.ReplaceAll(c.target, "HOST", host)
			if name == "h2c" && (strings.HasPrefix(target, "//") || target == "*" || c.want == "*") {
				continue // net/http's own HTTP/2 client has no way to say these
			}
			_, got := exchange(t, hostOf(t, s.http), c.method+" "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			if c.want == "" && !strings.HasPrefix(got, "HTTP/1.1 400 ") || c.want != "" && !strings.Contains(got, "<"+host+" "+c.want+">") {
				t.Errorf("%s %q of %s: got %q, want %q", c.method, target, name, got, c.want)
			}
		}
	}
	// The same by HTTP/2, where a path is all that there may be.
	origin := startRawOrigin(t)
	s.agent.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, origin.ln.Addr().String())
	want := map[string]string{}
	for _, c := range append(rows, row{"GET", "http://shop.relay.test/a", ""}) {
		conn := dialHTTP2(t, s)
		conn.headers(1, true, []hpack.HeaderField{{Name: ":method", Value: c.method}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: c.target}, {Name: ":authority", Value: "shop.relay.test"}}...)
		if status := conn.answer(1); (status == "200") != (c.want != "") {
			t.Errorf("%s %q by HTTP/2: %s", c.method, c.target, status)
		}
		if c.want != "" {
			want[conn.LocalAddr().String()] = c.method + " " + c.want + " HTTP/1.1\r\n"
		}
		conn.Close()
	}
	got := origin.of(t, s)
	for visitor, line := range want {
		if len(got[visitor]) != 1 || !strings.HasPrefix(string(got[visitor][0]), line) {
			t.Errorf("by HTTP/2 the origin got %q, want %q", got[visitor], line)
		}
	}
}

// TestRedirectsStayAtTheirSite requests an https tunnel on the plain listener, with a
// target that could turn the redirect towards another host.
func TestRedirectsStayAtTheirSite(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("safe", wire.Claim{Type: wire.TypeHTTPS, Domain: "safe"}, s.agent.origins[1])
	for target, want := range map[string]string{
		"/a%2fb|c?d":           "https://safe.relay.test:" + fmt.Sprint(portOf(s.edge.HTTPSAddr())) + "/a%2fb|c?d",
		"//other.example/":     "https://safe.relay.test:" + fmt.Sprint(portOf(s.edge.HTTPSAddr())) + "//other.example/",
		"http:.other.example/": "",
		"*":                    "",
	} {
		_, got := exchange(t, hostOf(t, s.http), "GET "+target+" HTTP/1.1\r\nHost: safe.relay.test\r\nConnection: close\r\n\r\n")
		if want != "" && !strings.Contains(got, "\r\nLocation: "+want+"\r\n") || want == "" && strings.Contains(got, "Location") {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestFieldsThatDecideAreNotForged sends fields that various origins would take for the
// edge's own, or for the end of the request.
func TestFieldsThatDecideAreNotForged(t *testing.T) {
	dump := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		json.NewEncoder(w).Encode([]http.Header{r.Header, r.Trailer})
	})
	s := startSite(t, testConfig(t.TempDir()), dump)
	g := s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTP, Domain: "h2c", HTTP2: true}, startH2C(t, dump))
	for _, url := range []string{s.http, g.PublicURL} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader("body")))
		for _, name := range []string{"Proxy", "X.Forwarded.For", "X!Real!Ip", "Content_Length", "Transfer_Encoding", "transfer.encoding"} {
			req.Header[name] = []string{"9"}
		}
		req.Header["X_Own"] = []string{"kept"}
		req.Trailer = http.Header{"X-Forwarded-For": {"9.9.9.9"}, "Authorization": {"Basic x"}, "X_real_ip": {"9"}, "X-Sum": {"4"}}
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got []http.Header
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		for name := range got[0] {
			if name == "Proxy" || strings.ContainsAny(name, "._!") && !strings.EqualFold(name, "X_Own") {
				t.Errorf("%s: the origin got the header %s", url, name)
			}
		}
		if got[0].Get("X_own") != "kept" {
			t.Errorf("%s: a visitor's own header is missing of %v", url, got[0])
		}
		for name := range got[1] {
			if name != "X-Sum" {
				t.Errorf("%s: the origin got the trailer %s", url, name)
			}
		}
		if got[1].Get("X-Sum") != "4" {
			t.Errorf("%s: the origin got the trailers %v", url, got[1])
		}
	}
}

// TestOldVisitorsChangeNoProtocol makes a visitor over HTTP/1.0 ask for another protocol,
// which a server must ignore (RFC 9110, section 7.8).
func TestOldVisitorsChangeNoProtocol(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<%s>", r.Header.Get("Upgrade"))
	}))
	for version, want := range map[string]string{"1.0": "<>", "1.1": "<other>"} {
		_, got := exchange(t, hostOf(t, s.http), "GET / HTTP/"+version+"\r\nHost: shop.relay.test\r\nConnection: Upgrade, close\r\nUpgrade: other\r\n\r\n")
		if !strings.Contains(got, want) {
			t.Errorf("HTTP/%s: got %q, want %s", version, got, want)
		}
	}
}

// TestVisitorsWhoSayThatTheySpeakHTTP10 checks that visitors that offer HTTP/1.0 in the
// handshake, as curl --http1.0 does, are served. A server refuses TLS to visitors that
// offer only protocols that it does not have (RFC 7301, section 3.2).
func TestVisitorsWhoSayThatTheySpeakHTTP10(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	for _, passing := range []bool{false, true} {
		if passing { // what a visitor says first is looked at then
			s.agent.mustClaim("tls", wire.Claim{Type: wire.TypeTLS, Domain: "raw"}, startOrigin(t, text("")))
		}
		raw, err := net.Dial("tcp", s.Addrs().HTTPS)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		c := tls.Client(raw, &tls.Config{ServerName: "shop.relay.test", RootCAs: s.roots(t), NextProtos: []string{"http/1.0"}})
		if _, err := io.WriteString(c, "GET / HTTP/1.0\r\nHost: shop.relay.test\r\n\r\n"); err != nil {
			t.Errorf("with a tls tunnel %v: %v", passing, err)
			continue
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 200 ") || !strings.HasSuffix(string(answer), "\r\n\r\nhello") {
			t.Errorf("with a tls tunnel %v: got %q, %v", passing, answer, err)
		}
	}
}

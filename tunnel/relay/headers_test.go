package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"adit/tunnel/relay/claim"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/wire"
)

// heard is what an origin received of a request.
type heard struct {
	Proto, Host     string
	Header, Trailer http.Header
}

// tellHeard answers with what it received.
func tellHeard(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	json.NewEncoder(w).Encode(heard{r.Proto, r.Host, r.Header, r.Trailer})
}

// TestRequestHeadersAreChanged sends requests over each version of HTTP, with fields that
// imitate the tunnel's own, also after the body.
func TestRequestHeadersAreChanged(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	claim := wire.Claim{Type: wire.TypeHTTPS, HostHeader: "inner.example", RequestHeaders: wire.ChangeHeaders(map[string]string{
		"X-Env": "prod", "authorization": "Bearer the tunnel's", "Accept": "a, b", "User-Agent": "", "Cookie": "", "X-Absent": "", "X_Odd": "set",
	})}
	for scheme, addr := range map[string]string{"http": startOrigin(t, http.HandlerFunc(tellHeard)), "h2c": startH2C(t, http.HandlerFunc(tellHeard))} {
		c := claim
		c.Domain, c.HTTP2 = scheme, scheme == "h2c"
		s.agent.mustClaim(scheme, c, addr)
		for version, visitor := range s.secureVisitors(t, s.testRelay) {
			t.Run(scheme+" by "+version, func(t *testing.T) {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+scheme+".relay.test/", io.MultiReader(strings.NewReader("body")))
				req.Header = http.Header{
					"X-Env": {"evil", "evil"}, "X_env": {"evil"}, "X.Env": {"evil"}, "X-Odd": {"evil"}, "Authorization": {"Basic evil"}, "User-Agent": {"evil"}, "Cookie": {"a=evil"},
					"Accept": {"evil"}, "X-Kept": {"kept"}, "X_kept": {"kept"}, "X-Forwarded-For": {"evil"},
				}
				if version == "HTTP/1.1" {
					req.Header["Connection"] = []string{"X-Env, Authorization"}
				}
				req.Trailer = http.Header{"X-Env": {"evil"}, "X_env": {"evil"}, "User-Agent": {"evil"}, "X-Sum": {"kept"}}
				resp, err := visitor.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				var got heard
				if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
					t.Fatal(err)
				}
				all := fmt.Sprint(got)
				if strings.Contains(all, "evil") || strings.Contains(all, "User-Agent") || got.Host != "inner.example" {
					t.Errorf("the origin got %s", all)
				}
				for name, want := range map[string]string{
					"X-Env": "[prod]", "Authorization": "[Bearer the tunnel's]", "Accept": "[a, b]", "X_odd": "[set]", "X-Kept": "[kept]", "X_kept": "[kept]", "X-Forwarded-For": "[127.0.0.1]",
				} {
					if have := fmt.Sprint(got.Header[name]); have != want {
						t.Errorf("%s: got %s, want %s", name, have, want)
					}
				}
				if fmt.Sprint(got.Trailer) != "map[X-Sum:[kept]]" {
					t.Errorf("trailer: got %v", got.Trailer)
				}
			})
		}
	}
}

// oddAnswer is an origin's attempt to keep from visitors what the tunnel sets, and to
// show what it removes.
const oddAnswer = "Server: evil\r\nX-Powered-By: evil\r\nSet-Cookie: evil\r\nSet-Cookie: evil\r\nCache-Control: evil\r\nCache-Control: evil\r\nX-Kept: kept\r\n"

// answered asks for a site and returns the answer's head, trailer and body, and
// the interim answers before it.
func answered(t *testing.T, visitor *http.Client, url string) (*http.Response, []http.Header, string) {
	t.Helper()
	var hints []http.Header
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		hints = append(hints, http.Header(h).Clone())
		return nil
	}})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	req.Header.Set("Te", "trailers") // else there are none by HTTP/3
	resp, err := visitor.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, hints, string(body)
}

func TestResponseHeadersAreChanged(t *testing.T) {
	raw := rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n"+oddAnswer+"\r\nHTTP/1.1 200 OK\r\n"+oddAnswer+
				"Connection: close, X-Frame-Options\r\nTrailer: X-Sum, X-Powered-By\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: kept\r\nX-Powered-By: evil\r\nX-Frame-Options: evil\r\n\r\n")
		}
	})
	h2c := startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for line := range strings.Lines(oddAnswer) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			h.Add(name, value)
		}
		w.WriteHeader(http.StatusEarlyHints)
		h.Set("Trailer", "X-Sum, X-Powered-By")
		io.WriteString(w, "ok")
		http.NewResponseController(w).Flush() // else the length is told, and HTTP/1.1 has no room for trailers
		h.Set("X-Sum", "kept")
		h.Set("X-Powered-By", "evil")
		h.Set(http.TrailerPrefix+"X-Frame-Options", "evil")
	}))
	s := startSite(t, testConfig(t.TempDir()), text(""))
	changes := wire.ChangeHeaders(map[string]string{
		"Server": "", "X-Powered-By": "", "Set-Cookie": "", "X-Absent": "", "Cache-Control": "max-age=60", "X-Frame-Options": "DENY", "Strict-Transport-Security": "max-age=1",
	})
	for scheme, addr := range map[string]string{"http": raw, "h2c": h2c} {
		s.agent.mustClaim(scheme, wire.Claim{Type: wire.TypeHTTPS, Domain: scheme, HTTP2: scheme == "h2c", ResponseHeaders: changes}, addr)
		for version, visitor := range s.secureVisitors(t, s.testRelay) {
			t.Run(scheme+" by "+version, func(t *testing.T) {
				resp, hints, body := answered(t, visitor, "https://"+scheme+".relay.test/")
				if all := fmt.Sprint(hints, resp.Header, resp.Trailer); body != "ok" || strings.Contains(all, "evil") || strings.Contains(all, "X-Powered-By") {
					t.Errorf("got %q with %s", body, all)
				}
				for name, want := range map[string]string{"Cache-Control": "[max-age=60]", "X-Frame-Options": "[DENY]", "Strict-Transport-Security": "[max-age=1]", "X-Kept": "[kept]"} {
					if have := fmt.Sprint(resp.Header[name]); have != want {
						t.Errorf("%s: got %s, want %s", name, have, want)
					}
				}
				if resp.Trailer.Get("X-Sum") != "kept" || len(resp.Trailer) != 1 {
					t.Errorf("trailer: got %v", resp.Trailer)
				}
				// Hints get nothing that the origin did not say there.
				if version != "HTTP/3.0" && (len(hints) != 1 || hints[0].Get("X-Frame-Options") != "" || hints[0].Get("Cache-Control") != "max-age=60" || hints[0].Get("X-Kept") != "kept") {
					t.Errorf("interim answers: got %v", hints)
				}
			})
		}
	}
}

// TestContentTypeThatIsRemovedIsNotGuessed checks that the relay does not guess a type,
// as that could turn something into a page that the tunnel's owner does not want to be
// one.
func TestContentTypeThatIsRemovedIsNotGuessed(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>page") })
	untyped := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		io.WriteString(w, "<html>page")
	})
	s := startSite(t, testConfig(t.TempDir()), text(""))
	for name, c := range map[string]struct {
		addr    string
		h2      bool
		changes wire.HeaderChanges
	}{
		"removed":         {startOrigin(t, page), false, wire.ChangeHeaders(map[string]string{"Content-Type": ""})},
		"removed-h2c":     {startH2C(t, page), true, wire.ChangeHeaders(map[string]string{"Content-Type": ""})},
		"never-there":     {startOrigin(t, untyped), false, wire.HeaderChanges{}},
		"never-there-h2c": {startH2C(t, untyped), true, wire.HeaderChanges{}},
	} {
		s.agent.mustClaim(name, wire.Claim{Type: wire.TypeHTTPS, Domain: name, HTTP2: c.h2, ResponseHeaders: c.changes}, c.addr)
		for version, visitor := range s.secureVisitors(t, s.testRelay) {
			resp, _, body := answered(t, visitor, "https://"+name+".relay.test/")
			if body != "<html>page" || resp.Header["Content-Type"] != nil {
				t.Errorf("%s by %s: got %q of type %q", name, version, body, resp.Header["Content-Type"])
			}
		}
	}
}

// TestHeadersOfAWebSocketAreChanged checks that a change of protocol is treated like any
// other request and answer.
func TestHeadersOfAWebSocketAreChanged(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	got := make(chan string, 1)
	g := s.agent.mustClaim("socket", wire.Claim{
		Type: wire.TypeHTTPS, Domain: "socket",
		RequestHeaders:  wire.ChangeHeaders(map[string]string{"X-Env": "prod", "Origin": ""}),
		ResponseHeaders: wire.ChangeHeaders(map[string]string{"Server": "", "X-Frame-Options": "DENY"}),
	}, startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- fmt.Sprint(r.Header["X-Env"], r.Header["Origin"])
		w.Header().Set("Server", "evil")
		wsEcho(t).ServeHTTP(w, r)
	})))
	for version, client := range s.webSocketClients(t) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c, resp, err := websocket.Dial(ctx, g.PublicURL, &websocket.DialOptions{
			HTTPClient: client, HTTPHeader: http.Header{"X-Env": {"evil"}, "Origin": {"https://evil.example"}}, Subprotocols: []string{"v2.chat"},
		})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if _, echo, err := c.Read(ctx); err != nil || string(echo) != "hello" {
			t.Errorf("%s: got %q, %v", version, echo, err)
		}
		c.CloseNow()
		if h := <-got; h != "[prod] []" || resp.Header["Server"] != nil || resp.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: the origin got %s, the visitor %v", version, h, resp.Header)
		}
	}
}

// TestHeadersOfBalancedTunnelsAreTheirOwn checks that each tunnel's changes apply only to
// its own answers.
func TestHeadersOfBalancedTunnelsAreTheirOwn(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token, visitor := r.client(t, "shop"), r.visitor(t)
	var url string
	for i, h2 := range []bool{false, true, false} {
		name := fmt.Sprint("i", i)
		start, changes := startOrigin, wire.ChangeHeaders(map[string]string{"X-Env": name})
		if h2 {
			start = func(tb testing.TB, h http.Handler) string { return startH2C(tb, h) }
		}
		if i == 2 {
			name, changes = "", wire.HeaderChanges{}
		}
		url = connect(t, token, fmt.Sprint("i", i)).mustClaim("k", wire.Claim{
			Type: wire.TypeHTTP, Domain: "shared", Mode: wire.ModeBalanced, HTTP2: h2, RequestHeaders: changes, ResponseHeaders: changes,
		}, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s at %s", r.Header.Get("X-Env"), name)
		}))).PublicURL
	}
	seen := map[string]bool{}
	eventually(t, "each is asked", func() bool {
		resp, _, body := answered(t, visitor, url)
		env, own, _ := strings.Cut(body, " at ")
		if env != own || resp.Header.Get("X-Env") != own {
			t.Fatalf("got %q with %q", body, resp.Header.Get("X-Env"))
		}
		seen[own] = true
		return len(seen) == 3
	})
}

// TestPagesOfTheRelayAreItsOwn checks that the tunnel's changes do not apply to answers
// that are not the origin's.
func TestPagesOfTheRelayAreItsOwn(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	changes := wire.ChangeHeaders(map[string]string{"X-Env": "prod", "Content-Type": ""})
	for _, h2 := range []bool{false, true} {
		g := s.agent.mustClaim("k", wire.Claim{Type: wire.TypeHTTPS, Domain: "down", HTTP2: h2, ResponseHeaders: changes}, "127.0.0.1:1")
		resp, _, _ := answered(t, s.visitor, g.PublicURL)
		if resp.StatusCode != http.StatusBadGateway || resp.Header.Get("X-Env") != "" || resp.Header.Get("Content-Type") == "" {
			t.Errorf("got %s with %v", resp.Status, resp.Header)
		}
	}
}

// TestHeadersChangeWithTheClaim claims a tunnel again, at the agent's node and for
// visitors of another.
func TestHeadersChangeWithTheClaim(t *testing.T) {
	c := startNodes(t, 2)
	here, there := c.all[0], c.all[1]
	a := connect(t, there.at(c.clientEverywhere("shop")), "i1")
	addr := startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("X-Env")) }))
	visitor := &http.Client{Transport: &http.Transport{}}
	for _, env := range []string{"one", "", "two", `<&>"` + strings.Repeat(`"`, 8000)} {
		changes := wire.HeaderChanges{}
		if env != "" {
			changes = wire.ChangeHeaders(map[string]string{"X-Env": env})
		}
		a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop", RequestHeaders: changes, ResponseHeaders: changes}, addr)
		everywhere(t, c.all, visitor, "shop.relay.test", env)
	}
	if n := len(here.edge.Endpoints()); n != 1 {
		t.Errorf("the other node has %d endpoints", n)
	}
}

func TestHeaderClaimsAreChecked(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	if !slices.Contains(a.welcome.Features, wire.FeatureHeaders) {
		t.Errorf("features: %v", a.welcome.Features)
	}
	for _, c := range []struct {
		kind, request, response string // JSON
		field, want             string
	}{
		{"http", `{"Content-Length":"1"}`, `{}`, "request_headers", "request_headers: Content-Length cannot be changed: it belongs to the connection, or the relay sets it"},
		{"https", `{"X-Env":"a\r\nX-Evil: b"}`, `{}`, "request_headers", "request_headers: the value of X-Env has control characters"},
		{"http", `{"X-Env: a\r\nX-Evil":"b"}`, `{}`, "request_headers", `request_headers: "X-Env: a\r\nX-Evil" is not the name of a header field`},
		{"http", `{}`, `{"Server":"a\nb"}`, "response_headers", "response_headers: the value of Server has control characters"},
		{"http", `{}`, `{"alt-svc":null}`, "response_headers", "response_headers: Alt-Svc cannot be changed: it belongs to the connection, or the relay sets it"},
		{"http", `{"x-env":"a","X-Env":"b"}`, `{}`, "request_headers", "request_headers: X-Env is given twice"},
		{"tcp", `{}`, `{"Server":""}`, "response_headers", "a tunnel of type tcp has no headers to change; give it no changes of headers"},
		{"tls", `{"X-Env":"a"}`, `{}`, "request_headers", "a tunnel of type tls has no headers to change; give it no changes of headers"},
		{"http", `["X-Env"]`, `{}`, "", "the request's body does not parse"},
		{"http", `{"X-Env":["a"]}`, `{}`, "", "the request's body does not parse"},
	} {
		body := fmt.Sprintf(`{"type":%q,"mode":"standard","request_headers":%s,"response_headers":%s}`, c.kind, c.request, c.response)
		err := a.call(http.MethodPut, wire.PathClaims+"k", json.RawMessage(body), new(wire.Grant))
		if p := problem(t, err, wire.CodeInvalid); p.Field != c.field || p.Message != c.want {
			t.Errorf("%s: got %q (%s), want %q", body, p.Message, p.Field, c.want)
		}
	}
	if claims := r.store.Claims.List(); len(claims) != 0 {
		t.Errorf("refused claims are kept: %+v", claims)
	}
	// What another node lets pass, of another version, is looked at again.
	if claim.Leads(&wire.Claim{Type: wire.TypeHTTP, RequestHeaders: wire.ChangeHeaders(map[string]string{"Host": "a"})}) == nil || message.NewChanges(wire.HeaderChanges{}) != nil {
		t.Error("a node takes another's word")
	}
}

package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"adit/internal/freeport"
	"adit/tunnel/wire"
)

// asked answers with what an origin received: its name, the Host and the target, and
// every header that it could take for the prefix.
func asked(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var prefix []string
		for name, values := range r.Header {
			if strings.Contains(wire.PlainHeader(name), "prefix") {
				prefix = append(prefix, values...)
			}
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s", name, r.Host, r.RequestURI, strings.Join(prefix, ","), body)
	})
}

// askTarget requests a target exactly as written.
func askTarget(t *testing.T, visitor *http.Client, base, target, body string) string {
	t.Helper()
	method, reader := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, reader = http.MethodPost, strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, base, reader)
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(target, "?")
	plain, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Path, req.URL.RawPath, req.URL.RawQuery = plain, path, query
	for _, name := range []string{"X-Forwarded-Prefix", "X_forwarded_prefix", "X-Forwarded_prefix", "X.Forwarded.Prefix"} {
		req.Header[name] = []string{"/evil"}
	}
	resp, err := visitor.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprint("status ", resp.StatusCode)
	}
	return string(got)
}

// TestRequestsGoWhereTheirPathsLead requests, over each version of HTTP, paths of a
// tunnel whose services use each protocol.
func TestRequestsGoWhereTheirPathsLead(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.leads(map[string]string{
		"/api": startOrigin(t, asked("api")), "/api/v2": startH2C(t, asked("v2")), "/h2": startH2C(t, asked("h2")),
		"/a b/é": startOrigin(t, asked("odd")), "/down": freeport.Loopback(t),
	})
	claim := wire.Claim{Type: wire.TypeHTTPS, Domain: "led", HostHeader: "inner.example", Paths: []wire.ClaimPath{
		{Path: "/api", Strip: true},
		{Path: "/api/v2", HTTP2: true},
		{Path: "/h2", HTTP2: true, Strip: true, HostHeader: "h2.example:81"},
		{Path: "/a b/é", Strip: true},
		{Path: "/down"},
		{Path: "/gone"},
	}}
	for _, unshared := range []bool{false, true} {
		claim.Unshared = unshared
		s.agent.mustClaim("led", claim, startOrigin(t, asked("own")))
		for version, visitor := range s.secureVisitors(t, s.testRelay) {
			for target, want := range map[string]string{
				"/":                   "own inner.example / ",
				"/apis?q":             "own inner.example /apis?q ",
				"/x/../api":           "own inner.example /x/../api ",
				"/api%2Fv2":           "own inner.example /api%2Fv2 ",
				"//api":               "own inner.example //api ",
				"/api":                "api inner.example / /api",
				"/api?q=%41":          "api inner.example /?q=%41 /api",
				"/%61pi/x%2F%41?a=b":  "api inner.example /x%2F%41?a=b /api",
				"/api/../x":           "api inner.example /../x /api",
				"/api//x":             "api inner.example //x /api",
				"/api/v2":             "v2 inner.example /api/v2 ",
				"/api/v2/%41":         "v2 inner.example /api/v2/%41 ",
				"/api/v2x":            "api inner.example /v2x /api",
				"/h2":                 "h2 h2.example:81 / /h2",
				"/%682/x%2F%41?a=%5B": "h2 h2.example:81 /x%2F%41?a=%5B /h2",
				"/h2//x":              "h2 h2.example:81 //x /h2",
				"/a%20b/%C3%A9/x":     "odd inner.example /x /a%20b/%C3%A9",
				"/down/x":             "status 502",
				"/gone":               "status 502",
			} {
				for _, body := range []string{"", "hello"} {
					if got := askTarget(t, visitor, "https://led.relay.test", target, body); got != want+" "+body && got != want {
						t.Errorf("%s by %s, unshared %v: got %q, want %q", target, version, unshared, got, want)
					}
				}
			}
		}
	}
	// What is written of a visit is what the visitor asked for.
	askTarget(t, s.secureVisitors(t, s.testRelay)["HTTP/2.0"], "https://led.relay.test", "/%61pi/last", "")
	recorded(t, s.Relay, "the path as it was asked for", func(e wire.Access) bool { return e.Path == "/api/last" && e.Key == "led" })
}

// TestURLsOfWebDAVAreAsTheOriginKnowsThem moves files over each version of HTTP, at
// origins that take any URL without their own scheme and host for another server's.
func TestURLsOfWebDAVAreAsTheOriginKnowsThem(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	strict := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := r.Header.Get("Destination")
		if !strings.HasPrefix(to, "http://"+r.Host+"/") {
			w.WriteHeader(http.StatusBadGateway) // RFC 4918, section 9.9.4
		}
		fmt.Fprintf(w, "%s %s", to, r.Header.Get("If"))
	})
	s.agent.leads(map[string]string{"/dav": startOrigin(t, strict), "/h2": startH2C(t, strict), "/old": startOrigin(t, strict)})
	claim := wire.Claim{Type: wire.TypeHTTPS, Domain: "files", Scheme: "http", Paths: []wire.ClaimPath{
		{Path: "/dav", Strip: true, Scheme: "http"},
		{Path: "/h2", Strip: true, Scheme: "http", HTTP2: true, HostHeader: "h2.example:81"},
		{Path: "/old"}, // of an agent that does not say
	}}
	base := strings.TrimSuffix(s.agent.mustClaim("files", claim, startOrigin(t, strict)).PublicURL, "/")
	host := strings.TrimPrefix(base, "https://")
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		for _, c := range []struct{ from, to, want string }{
			{"/a", base + "/b%2Fc?q", "200 http://" + host + "/b%2Fc?q <http://" + host + "/b%2Fc?q> (<" + base + "/b%2Fc?q>)"},
			{"/a", base + "/dav/b", "502 " + base + "/dav/b <" + base + "/dav/b> (<" + base + "/dav/b>)"},
			{"/a", "https://other.example/b", "502 https://other.example/b <https://other.example/b> (<https://other.example/b>)"},
			{"/dav/a", base + "/%64av/b", "200 http://" + host + "/b <http://" + host + "/b> (<" + base + "/%64av/b>)"},
			{"/dav/a", base + "/b", "502 " + base + "/b <" + base + "/b> (<" + base + "/b>)"},
			{"/h2/a", base + "/h2/b", "200 http://h2.example:81/b <http://h2.example:81/b> (<" + base + "/h2/b>)"},
			{"/old/a", base + "/old/b", "502 " + base + "/old/b <" + base + "/old/b> (<" + base + "/old/b>)"},
		} {
			req, err := http.NewRequestWithContext(t.Context(), "MOVE", base+c.from, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Destination", c.to)
			req.Header.Set("If", "<"+c.to+"> (<"+c.to+">)")
			resp, err := visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if got := fmt.Sprint(resp.StatusCode, " ", string(body)); err != nil || got != c.want {
				t.Errorf("%s to %s by %s: got %q, %v, want %q", c.from, c.to, version, got, err, c.want)
			}
		}
	}
}

// TestAnswersLeadToThePublicSite requests, over each version of HTTP, something that
// redirects to the origin's own address and sets a cookie for the origin's own name.
func TestAnswersLeadToThePublicSite(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	redirects := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b", Domain: "inner.test"})
		w.Header()["Location"] = []string{r.URL.Query().Get("to")}
		w.WriteHeader(http.StatusFound)
	})
	s.agent.leads(map[string]string{"/api": startOrigin(t, redirects), "/h2": startH2C(t, redirects), "/old": startOrigin(t, redirects)})
	claim := wire.Claim{Type: wire.TypeHTTPS, Domain: "led", Scheme: "http", Port: 3000, Paths: []wire.ClaimPath{
		{Path: "/api", Strip: true, Scheme: "http", Port: 3001},
		{Path: "/h2", HTTP2: true, Scheme: "http", Port: 3002, HostHeader: "inner.test"},
		{Path: "/old"}, // of an agent that does not say
	}}
	base := strings.TrimSuffix(s.agent.mustClaim("shop", claim, startOrigin(t, redirects)).PublicURL, "/")
	name := strings.TrimPrefix(base, "https://")
	name, _, _ = strings.Cut(name, ":")
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		visitor.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		for _, c := range []struct{ at, to, want string }{
			{"/", "http://" + name + ":3000/dir/?q", base + "/dir/?q"},
			{"/", "http://" + name + ":3001/", ""},
			{"/", "/dir/", ""},
			{"/", "https://other.test:3000/", ""},
			{"/", "http" + strings.TrimPrefix(base, "https") + "/x", base + "/x"},
			{"/", "http://" + name + "/x", base + "/x"},
			{"/api/x", "http://" + name + ":3001/y", base + "/api/y"},
			{"/api/x", "http://" + name + ":3001/api/y", base + "/api/y"},
			{"/api/x", "http" + strings.TrimPrefix(base, "https") + "/y", base + "/y"},
			{"/h2", "http://inner.test/y", base + "/y"},
			{"/h2", "https://inner.test:3002/y", base + "/y"},
			{"/old", "http://" + name + ":3000/", ""},
			{"/old", "http://" + name + "/x", base + "/x"},
		} {
			resp, err := visitor.Get(base + c.at + "?to=" + url.QueryEscape(c.to))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			cookie := "a=b; Domain=inner.test"
			if c.at == "/h2" {
				cookie = "a=b"
			}
			if got, want := resp.Header.Get("Location"), cmp.Or(c.want, c.to); got != want || resp.Header.Get("Set-Cookie") != cookie {
				t.Errorf("%s at %s by %s: got %q, want %q; %v", c.to, c.at, version, got, want, resp.Header)
			}
		}
	}
	// A site without TLS of the same name is another one, to which the origin may lead.
	s.agent.mustClaim("plain", wire.Claim{Type: wire.TypeHTTP, Domain: "led"}, startOrigin(t, redirects))
	s.visitor.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	to := "http://" + name + "/x"
	resp, err := s.visitor.Get(base + "/?to=" + url.QueryEscape(to))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Location"); got != to {
		t.Errorf("got %q, want %q, which is the site without TLS", got, to)
	}
}

// TestPrefixOfALoadBalancerIsNotTold checks that an origin that is told what was removed
// from its path is told only that.
func TestPrefixOfALoadBalancerIsNotTold(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TrustedProxies = []string{"127.0.0.0/8"}
	s := startSite(t, cfg, text(""))
	s.agent.leads(map[string]string{"/api": startOrigin(t, asked("api")), "/h2": startH2C(t, asked("h2")), "/kept": startOrigin(t, asked("kept"))})
	g := s.agent.mustClaim("led", wire.Claim{Type: wire.TypeHTTPS, Domain: "led", Paths: []wire.ClaimPath{{Path: "/api", Strip: true}, {Path: "/h2", Strip: true, HTTP2: true}, {Path: "/kept"}}}, startOrigin(t, asked("own")))
	for path, want := range map[string]string{"/api": " /x /api ", "/h2": " /x /h2 ", "/kept": " /kept/x /evil "} {
		if got := askTarget(t, s.visitor, g.PublicURL, path+"/x", ""); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWebSocketOfAPath is led as other requests are.
func TestWebSocketOfAPath(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	got := make(chan string, 1)
	socket := startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.RequestURI + " " + fmt.Sprint(r.Header["X-Forwarded-Prefix"])
		wsEcho(t).ServeHTTP(w, r)
	}))
	s.agent.leads(map[string]string{"/ws": socket, "/h2": socket})
	// HTTP/2 is for all but changes of protocol.
	g := s.agent.mustClaim("socket", wire.Claim{Type: wire.TypeHTTPS, Domain: "socket", HTTP2: true, Paths: []wire.ClaimPath{{Path: "/ws", Strip: true}, {Path: "/h2", HTTP2: true}}}, freeport.Loopback(t))
	for version, client := range s.webSocketClients(t) {
		for path, want := range map[string]string{"/ws/chat?room=1": "/chat?room=1 [/ws]", "/h2/chat": "/h2/chat []"} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c, _, err := websocket.Dial(ctx, g.PublicURL+path, &websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"X-Forwarded-Prefix": {"/evil"}}, Subprotocols: []string{"v2.chat"}})
			if err != nil {
				t.Fatalf("%s by %s: %v", path, version, err)
			}
			if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
				t.Errorf("%s by %s: %v", path, version, err)
			}
			if _, echo, err := c.Read(ctx); err != nil || string(echo) != "hello" {
				t.Errorf("%s by %s: got %q, %v", path, version, echo, err)
			}
			c.CloseNow()
			if asked := <-got; asked != want {
				t.Errorf("%s by %s: the origin was asked for %s, want %s", path, version, asked, want)
			}
		}
	}
}

// TestGRPCOfAPath checks that gRPC goes to the path's service over HTTP/2, although the
// claim does not say so.
func TestGRPCOfAPath(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.leads(map[string]string{"/pkg.Service": startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		io.WriteString(w, r.RequestURI+" ")
		io.Copy(w, r.Body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	}))})
	g := s.agent.mustClaim("grpc", wire.Claim{Type: wire.TypeHTTPS, Domain: "grpc", Paths: []wire.ClaimPath{{Path: "/pkg.Service"}}}, freeport.Loopback(t))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, g.PublicURL+"/pkg.Service/Method", strings.NewReader("\x00\x00\x00\x00\x02hi"))
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	resp, err := s.visitor.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "/pkg.Service/Method \x00\x00\x00\x00\x02hi" || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("got %q, trailer %v", body, resp.Trailer)
	}
}

// TestPathWhoseServiceIsDownLeavesTheTurnAlone shares an address between two agents. On
// one of them a path's service is down, and the other has no such path.
func TestPathWhoseServiceIsDownLeavesTheTurnAlone(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token, visitor := r.client(t, "shop"), r.visitor(t)
	down := freeport.Loopback(t)
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shared", Mode: wire.ModeBalanced, Paths: []wire.ClaimPath{{Path: "/api", Strip: true}}}
	a, b := connect(t, token, "i1"), connect(t, token, "i2")
	a.leads(map[string]string{"/api": down})
	b.leads(map[string]string{"/api": startOrigin(t, asked("api 2"))})
	a.mustClaim("k", claim, startOrigin(t, text("own 1")))
	url := b.mustClaim("k", claim, startOrigin(t, text("own 2"))).PublicURL
	seen := map[string]int{}
	for i := range 60 {
		target := []string{"", "/api/x", "/api/x"}[i%3]
		code, body := get(t, visitor, url+target)
		if want := "api 2 " + strings.TrimPrefix(url, "http://") + " /x /api "; code != http.StatusOK || target != "" && body != want {
			t.Fatalf("%s: got status %d, %q", target, code, body)
		}
		seen[body]++
	}
	if seen["own 1"] < 5 || seen["own 2"] < 5 {
		t.Errorf("got %v, want both agents to have their share of what no path has", seen)
	}
	// Back, it gets its share of the path again.
	ln, err := net.Listen("tcp", down)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: asked("api 1")}
	go s.Serve(ln)
	defer s.Close()
	eventually(t, "the path's service has its turn", func() bool {
		_, body := get(t, visitor, url+"/api/x")
		return strings.HasPrefix(body, "api 1")
	})
	// Each agent's own paths hold for what it gets.
	claim.Paths = nil
	b.mustClaim("k", claim, startOrigin(t, asked("without")))
	found := map[string]bool{}
	eventually(t, "each is asked in its way", func() bool {
		_, body := get(t, visitor, url+"/api/x")
		switch {
		case strings.HasPrefix(body, "api 1 ") && strings.HasSuffix(body, " /x /api "), strings.HasPrefix(body, "without ") && strings.HasSuffix(body, " /api/x  "):
			found[body[:5]] = true
		case !strings.HasPrefix(body, "api 2"):
			t.Fatalf("got %q", body)
		}
		return len(found) == 2
	})
}

// TestPathsChangeWithTheClaim claims a tunnel again, at the agent's node and for visitors
// of another.
func TestPathsChangeWithTheClaim(t *testing.T) {
	c := startNodes(t, 2)
	here, there := c.all[0], c.all[1]
	a := connect(t, there.at(c.clientEverywhere("shop")), "i1")
	a.leads(map[string]string{"/x": startOrigin(t, asked("x")), "/x/y": startOrigin(t, asked("y"))})
	own := startOrigin(t, asked("own"))
	visitor := &http.Client{Transport: &http.Transport{}}
	for _, step := range []struct {
		paths []wire.ClaimPath
		want  string
	}{
		{[]wire.ClaimPath{{Path: "/x"}}, "x shop.relay.test /x  "},
		{nil, "own shop.relay.test /x  "},
		{[]wire.ClaimPath{{Path: "/x/y"}, {Path: "/x", Strip: true}}, "x shop.relay.test / /x "},
		{[]wire.ClaimPath{{Path: "/x/y"}}, "own shop.relay.test /x  "},
		{[]wire.ClaimPath{{Path: "/x", HostHeader: "inner.example"}}, "x inner.example /x  "},
	} {
		a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop", Paths: step.paths}, own)
		everywhere(t, c.all, visitor, "shop.relay.test", step.want)
	}
	if n := len(here.edge.Endpoints()); n != 1 {
		t.Errorf("the other node has %d endpoints", n)
	}
}

func TestPathClaimsAreChecked(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	if !slices.Contains(a.welcome.Features, wire.FeaturePaths) {
		t.Errorf("features: %v", a.welcome.Features)
	}
	for _, c := range []struct{ kind, paths, want string }{
		{"http", `[{"path":"/api/"}]`, `paths: the path "/api/" must not end with /; without it, everything below is included as well`},
		{"https", `[{"path":"/api"},{"path":"/api","strip":true}]`, `paths: the path /api is given twice`},
		{"https", `[{"path":"/api","host_header":"a b"}]`, `paths: host_header of /api: "a b" is not a host; write a name or an address, such as app.local or 192.0.2.1:8080`},
		{"tcp", `[{"path":"/api"}]`, `a tunnel of type tcp has no paths; give it none`},
		{"tls", `[{"path":"/api"}]`, `a tunnel of type tls has no paths; give it none`},
	} {
		body := fmt.Sprintf(`{"type":%q,"mode":"standard","paths":%s}`, c.kind, c.paths)
		err := a.call(http.MethodPut, wire.PathClaims+"k", json.RawMessage(body), new(wire.Grant))
		if p := problem(t, err, wire.CodeInvalid); p.Field != "paths" || p.Message != c.want {
			t.Errorf("%s: got %q (%s), want %q", body, p.Message, p.Field, c.want)
		}
	}
	if claims := r.store.Claims.List(); len(claims) != 0 {
		t.Errorf("refused claims are kept: %+v", claims)
	}
	// None is none, whatever the type.
	if _, err := a.claim("k", wire.Claim{Type: wire.TypeTCP, Paths: []wire.ClaimPath{}}, ""); err != nil {
		t.Errorf("got %v", err)
	}
}

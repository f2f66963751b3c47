package relay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	proxyproto "github.com/pires/go-proxyproto"

	"adit/tunnel/relay/config"
	"adit/tunnel/wire"
)

// site is a relay with an agent that publishes an origin by http and https.
type site struct {
	*testRelay
	agent       *fakeAgent
	token       wire.Token
	http, https string // public URLs
	visitor     *http.Client
}

func startSite(tb testing.TB, cfg config.Config, origin http.Handler) *site {
	tb.Helper()
	return startSiteOn(tb, startRelay(tb, cfg), origin)
}

func startSiteOn(tb testing.TB, r *testRelay, origin http.Handler) *site {
	tb.Helper()
	s := &site{testRelay: r, token: r.client(tb, "shop")}
	s.agent = connect(tb, s.token, "i1")
	addr := startOrigin(tb, origin)
	s.http = s.agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, addr).PublicURL
	s.https = s.agent.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, addr).PublicURL
	s.visitor = r.visitor(tb)
	return s
}

func TestWebSocketEcho(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Errorf("origin: %v", err)
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(1 << 20)
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			c.Write(r.Context(), kind, data)
		}
	}))
	for _, base := range []string{s.http, s.https} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c, _, err := websocket.Dial(ctx, base+"/chat", &websocket.DialOptions{HTTPClient: s.visitor})
		if err != nil {
			t.Fatalf("%s: %v", base, err)
		}
		c.SetReadLimit(1 << 20)
		for _, size := range []int{1, 200, 500_000} {
			want := bytes.Repeat([]byte("x"), size)
			if err := c.Write(ctx, websocket.MessageBinary, want); err != nil {
				t.Fatal(err)
			}
			if _, got, err := c.Read(ctx); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: got %d bytes, %v; want %d", base, len(got), err, size)
			}
		}
		c.Close(websocket.StatusNormalClosure, "")
		cancel()
	}
}

func TestEventsArriveOneByOne(t *testing.T) {
	feeds := map[string]chan string{"/a": make(chan string), "/b": make(chan string)}
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		next := feeds[r.URL.Path]
		for {
			select {
			case text := <-next:
				fmt.Fprintf(w, "data: %s\n\n", text)
				http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	for path, base := range map[string]string{"/a": s.http, "/b": s.https} {
		next := feeds[path]
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
		go func() {
			select {
			case next <- "0":
			case <-ctx.Done():
			}
		}()
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		read := bufio.NewReader(resp.Body)
		for i := range 3 {
			if i > 0 { // only once the one before has arrived
				select {
				case next <- fmt.Sprint(i):
				case <-ctx.Done():
					t.Fatal("the origin has gone")
				}
			}
			line, err := read.ReadString('\n')
			if err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Errorf("%s: got %q, %v", base, line, err)
			}
			read.ReadString('\n')
		}
		cancel()
		resp.Body.Close()
	}
}

func TestTrailersAndFullDuplex(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		control := http.NewResponseController(w)
		control.EnableFullDuplex()
		lines, n := bufio.NewScanner(r.Body), 0
		for lines.Scan() {
			n++
			fmt.Fprintln(w, "got", lines.Text())
			control.Flush()
		}
		w.Header().Set("X-Sum", fmt.Sprint(n))
	}))
	body, in := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.https, body)
	req.Header.Set("TE", "trailers")
	go fmt.Fprintln(in, "0")
	resp, err := s.visitor.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 2 {
		t.Errorf("protocol %s, want HTTP/2", resp.Proto)
	}
	next := lines(resp.Body)
	for i := range 3 {
		if i > 0 {
			fmt.Fprintln(in, i)
		}
		if line, err := next(); err != nil || line != fmt.Sprintf("got %d\n", i) {
			t.Errorf("got %q, %v", line, err)
		}
	}
	in.Close()
	if _, err := next(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
	resp.Body.Close()
	if got := resp.Trailer.Get("X-Sum"); got != "3" {
		t.Errorf("trailer %q, want 3", got)
	}
}

// TestGRPCReachesTheOriginByHTTP2 sends what a gRPC client sends, to an origin
// that speaks HTTP/2 without TLS.
func TestGRPCReachesTheOriginByHTTP2(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	origin := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		io.Copy(w, r.Body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})}
	go origin.Serve(ln)
	defer origin.Close()
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, ln.Addr().String())
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, g.PublicURL+"/pkg.Service/Method", strings.NewReader("\x00\x00\x00\x00\x02hi"))
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	resp, err := r.visitor(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "\x00\x00\x00\x00\x02hi" || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("got %q, trailer %v", body, resp.Trailer)
	}
}

// TestGRPCWebReachesTheOriginByHTTP1 calls a service that does not speak HTTP/2, as
// browsers do, over any version of HTTP that the edge has.
func TestGRPCWebReachesTheOriginByHTTP1(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		io.WriteString(w, r.Proto)
	}))
	for version, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		for _, kind := range []string{"application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"} {
			resp, err := visitor.Post(s.https+"/pkg.Service/Method", kind, strings.NewReader("\x00\x00\x00\x00\x02hi"))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "HTTP/1.1" || resp.Header.Get("Grpc-Status") != "" {
				t.Errorf("%s by %s: got %q, header %v; want an answer by HTTP/1.1", kind, version, body, resp.Header)
			}
		}
	}
}

func TestContinueIsAskedOfTheOrigin(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		io.Copy(w, r.Body)
	}))
	s.visitor.Transport.(*http.Transport).ExpectContinueTimeout = patience
	for _, c := range []struct {
		site, path          string
		status, told, major int
	}{
		{s.http, "/yes", 200, 1, 1},
		{s.http, "/no", 417, 0, 1},
		{s.https, "/yes", 200, 1, 2},
	} {
		var told atomic.Int64
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			if code == 100 {
				told.Add(1)
			}
			return nil
		}})
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, c.site+c.path, strings.NewReader("body"))
		req.Header.Set("Expect", "100-continue")
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || int(told.Load()) != c.told || resp.ProtoMajor != c.major {
			t.Errorf("%s by HTTP/%d: status %d, told %d times to go on", c.path, resp.ProtoMajor, resp.StatusCode, told.Load())
		}
	}
}

func TestEarlyHintsPass(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "page")
	}))
	hints := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { hints++; return nil }})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.http, nil)
	resp, err := s.visitor.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if hints != 1 || resp.StatusCode != 200 {
		t.Errorf("%d hints, status %d", hints, resp.StatusCode)
	}
}

func TestOriginIsToldOfTheVisitor(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{
			"for": r.Header.Get("X-Forwarded-For"), "proto": r.Header.Get("X-Forwarded-Proto"), "host": r.Header.Get("X-Forwarded-Host"),
			"forwarded": r.Header.Get("Forwarded"), "real": r.Header.Get("X-Real-Ip"), "port": r.Header.Get("X-Forwarded-Port"), "Host": r.Host,
		})
	})
	ask := func(s *site, base string) map[string]string {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
		for name, v := range map[string]string{
			"X-Forwarded-For": "9.9.9.9", "X-Forwarded-Proto": "gopher", "X-Forwarded-Host": "evil.example",
			"Forwarded": "for=9.9.9.9", "X-Real-Ip": "9.9.9.9", "X-Forwarded-Port": "1", "Connection": "X-Forwarded-For",
		} {
			req.Header.Set(name, v)
		}
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got map[string]string
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("a visitor's own word is dropped", func(t *testing.T) {
		s := startSite(t, testConfig(t.TempDir()), echo)
		host := strings.TrimPrefix(s.http, "http://")
		got := ask(s, s.http)
		want := map[string]string{
			"for": "127.0.0.1", "proto": "http", "host": host, "real": "", "port": "", "Host": host,
			"forwarded": `for=127.0.0.1;host="` + host + `";proto=http`,
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: got %q, want %q", k, got[k], v)
			}
		}
		g := s.agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop", HostHeader: "inner.example:8080"}, s.agent.origins[1])
		if got := ask(s, g.PublicURL); got["Host"] != "inner.example:8080" || got["host"] != host {
			t.Errorf("with host_header: got %v", got)
		}
	})
	t.Run("nor do other spellings pass", func(t *testing.T) {
		// CGI and WSGI read an underscore as they read a hyphen.
		names := []string{"X_Forwarded_For", "x_real_ip", "X-Forwarded_Proto", "X_FORWARDED-HOST", "X_Forwarded_Port", "X_Other"}
		for what, trusted := range map[string][]string{"a visitor": nil, "a load balancer": {"127.0.0.0/8"}} {
			cfg := testConfig(t.TempDir())
			cfg.TrustedProxies = trusted
			s := startSite(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { json.NewEncoder(w).Encode(r.Header) }))
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http, nil)
			for _, name := range names {
				req.Header[name] = []string{"9.9.9.9"}
			}
			resp, err := s.visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var got http.Header
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			for name := range got {
				if strings.Contains(name, "_") && !strings.EqualFold(name, "X_Other") {
					t.Errorf("from %s: the origin got %s", what, name)
				}
			}
			if got.Get("X-Forwarded-For") != "127.0.0.1" || got.Get("X_Other") == "" {
				t.Errorf("from %s: the origin got %v", what, got)
			}
		}
	})
	t.Run("a load balancer's is kept", func(t *testing.T) {
		cfg := testConfig(t.TempDir())
		cfg.TrustedProxies = []string{"127.0.0.0/8"}
		s := startSite(t, cfg, echo)
		got := ask(s, s.http)
		for k, v := range map[string]string{"for": "9.9.9.9, 127.0.0.1", "proto": "gopher", "host": "evil.example", "real": "9.9.9.9"} {
			if got[k] != v {
				t.Errorf("%s: got %q, want %q", k, got[k], v)
			}
		}
		recorded(t, s.Relay, "a trusted proxy's visitor", func(e wire.Access) bool { return e.Visitor == "9.9.9.9" })
		// The same by the PROXY protocol, for a connection.
		conn, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		proxyproto.HeaderProxyFromAddrs(2, &net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 7}, &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 80}).WriteTo(conn)
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n")
		answer, _ := io.ReadAll(conn)
		if !strings.Contains(string(answer), `"for":"2001:db8::7"`) || !strings.Contains(string(answer), `for=\"[2001:db8::7]\"`) {
			t.Errorf("by the PROXY protocol: %s", answer)
		}
	})
}

func TestAgentGoneHalfwayEndsTheResponse(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		w.Write(make([]byte, 1000))
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	resp, err := s.visitor.Get(s.http)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.ReadFull(resp.Body, make([]byte, 1000))
	s.agent.close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a broken response looks whole")
	}
}

func BenchmarkHTTPKeepAlive(b *testing.B) {
	s := startSite(b, testConfig(b.TempDir()), text("hello"))
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if status, _ := get(b, s.visitor, s.http); status != 200 {
			b.Fatal(status)
		}
	}
}

// BenchmarkHTTPParallel has visitor, relay, agent and origin in one process.
func BenchmarkHTTPParallel(b *testing.B) {
	s := startSite(b, testConfig(b.TempDir()), text("hello"))
	s.visitor.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := s.visitor.Get(s.http)
			if err != nil {
				b.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
}

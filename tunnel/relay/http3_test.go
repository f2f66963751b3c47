package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"adit/internal/freeport"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

func (r *testRelay) roots(tb testing.TB) *x509.CertPool {
	tb.Helper()
	pem, err := os.ReadFile(r.CAFile())
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		tb.Fatalf("read ca.pem: %v", err)
	}
	return pool
}

// visitor3 returns an HTTP/3 client that resolves every name to the relay's edge.
func (r *testRelay) visitor3(tb testing.TB) *http.Client {
	tb.Helper()
	t := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.roots(tb)},
		Dial: func(ctx context.Context, addr string, tlsConf *tls.Config, conf *quic.Config) (*quic.Conn, error) {
			_, port, _ := net.SplitHostPort(addr)
			return quic.DialAddr(ctx, "127.0.0.1:"+port, tlsConf, conf)
		},
	}
	tb.Cleanup(func() { t.Close() })
	return &http.Client{Transport: t, Timeout: 2 * patience}
}

// getWithTrailers sends a request that accepts trailers. Over HTTP/3, only such requests
// get them.
func getWithTrailers(tb testing.TB, visitor *http.Client, url string) (*http.Response, error) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Te", "trailers")
	return visitor.Do(req)
}

func TestHTTP3Serves(t *testing.T) {
	var got atomic.Value
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Clone(context.Background()))
		w.Header().Set("Trailer", "X-Sum")
		n, _ := io.Copy(w, r.Body)
		w.Header().Set("X-Sum", fmt.Sprint(n))
	}))
	visitor := s.visitor3(t)
	for _, size := range []int{0, 1, 3 << 20} {
		body := bytes.Repeat([]byte("x"), size)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.https+"/path?a=b", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Te", "trailers")
		resp, err := visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		back, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(back, body) || resp.ProtoMajor != 3 {
			t.Errorf("got %d bytes by %s, %v; want %d by HTTP/3", len(back), resp.Proto, err, size)
		}
		if resp.Trailer.Get("X-Sum") != fmt.Sprint(size) {
			t.Errorf("trailer %v", resp.Trailer)
		}
		if resp.Header.Get("Alt-Svc") != "" {
			t.Errorf("HTTP/3 is told of HTTP/3: %q", resp.Header.Get("Alt-Svc"))
		}
	}
	r := got.Load().(*http.Request)
	if r.ProtoMajor != 1 || r.URL.String() != "/path?a=b" || r.Header.Get("X-Forwarded-For") != "127.0.0.1" || r.Header.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("the origin got %s %s with %v", r.Proto, r.URL, r.Header)
	}
	recorded(t, s.Relay, "the upload", func(e wire.Access) bool { return e.BytesIn == 3<<20 && e.Status == 200 })
}

// TestWhoTakesNoTrailersByHTTP3GetsNone checks that trailers are left out, since Chromium
// fails answers that have some.
func TestWhoTakesNoTrailersByHTTP3GetsNone(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/announced" {
			w.Header().Set("Trailer", "X-Sum")
		}
		io.WriteString(w, "all of it")
		w.(http.Flusher).Flush()
		if r.URL.Path == "/announced" {
			w.Header().Set("X-Sum", "9")
		} else {
			w.Header().Set(http.TrailerPrefix+"X-Sum", "9")
		}
	}))
	visitor := s.visitor3(t)
	for _, path := range []string{"/announced", "/late"} {
		for te, want := range map[string]string{"": "", "trailers": "9"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if te != "" {
				req.Header.Set("Te", te)
			}
			resp, err := visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != "all of it" || resp.Trailer.Get("X-Sum") != want {
				t.Errorf("%s, Te %q: got %q, %v with the trailer %v, want %q", path, te, body, err, resp.Trailer, want)
			}
		}
	}
}

// TestSitesBehindALoadBalancerDoNotTellOfHTTP3 checks that HTTP/3 is not advertised:
// visitors of a load balancer that ends TLS would ask it for HTTP/3 instead of the relay.
func TestSitesBehindALoadBalancerDoNotTellOfHTTP3(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TrustedProxies = []string{"127.0.0.0/8"}
	s := startSite(t, cfg, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	resp, err := s.visitor.Get(s.https)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Alt-Svc"); got != "" || resp.StatusCode != http.StatusOK {
		t.Errorf("got status %d and Alt-Svc %q", resp.StatusCode, got)
	}
}

func TestSitesTellOfHTTP3(t *testing.T) {
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3="elsewhere:1"`) // of the origin's own port, which no visitor reaches
	})
	s := startSite(t, testConfig(t.TempDir()), origin)
	want := fmt.Sprintf(`h3=":%d"; ma=86400`, portOf(s.edge.HTTPSAddr()))
	for base, want := range map[string]string{s.https: want, s.http: ""} {
		resp, err := s.visitor.Get(base)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := strings.Join(resp.Header["Alt-Svc"], "|"); got != want {
			t.Errorf("%s: Alt-Svc %q, want %q", base, got, want)
		}
	}
	cfg := testConfig(t.TempDir())
	cfg.HTTP3, cfg.EdgeHTTPSListen = false, freeport.Loopback(t) // whose UDP port is nobody's else
	off := startSite(t, cfg, origin)
	resp, err := off.visitor.Get(off.https)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Alt-Svc"); got != "" {
		t.Errorf("without HTTP/3: Alt-Svc %q", got)
	}
	if c, err := net.ListenPacket("udp", off.edge.HTTPSAddr().String()); err != nil {
		t.Errorf("without HTTP/3 its port is taken: %v", err)
	} else {
		c.Close()
	}
}

func TestHTTP3HoldsPolicies(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("in"))
	visitor := s.visitor3(t)
	s.setPolicy(t, "shop", `{"deny":["127.0.0.0/8"]}`)
	eventually(t, "the policy is held", func() bool { status, _ := get(t, visitor, s.https); return status == 403 })
	s.setPolicy(t, "shop", `{"max_body":10}`)
	eventually(t, "the policy is changed", func() bool { status, _ := get(t, visitor, s.https); return status == 200 })
	resp, err := visitor.Post(s.https, "", strings.NewReader(strings.Repeat("x", 100)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("a body that is too large: status %d", resp.StatusCode)
	}
}

func TestHTTP3Limits(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.HeaderBytes, cfg.Limits.HeaderTime, cfg.Limits.ConnectionsPerAddress = 4096, "2s", 4
	s := startSite(t, cfg, text("served"))
	t.Run("header size", func(t *testing.T) {
		visitor := s.visitor3(t)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https, nil)
		req.Header.Set("X-Large", strings.Repeat("x", 20_000))
		resp, err := visitor.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("status %d", resp.StatusCode)
			}
		}
		visitor.CloseIdleConnections()
	})
	try := func() (*quic.Conn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return quic.DialAddr(ctx, s.edge.HTTPSAddr().String(), &tls.Config{RootCAs: s.roots(t), ServerName: "shop.relay.test", NextProtos: []string{"h3"}}, nil)
	}
	// A handshake has no longer than a header: on a machine that stands still the
	// first may be too late.
	dial := func(t *testing.T) (conn *quic.Conn) {
		t.Helper()
		eventually(t, "a connection is let in", func() (ok bool) {
			var err error
			conn, err = try()
			return err == nil
		})
		return conn
	}
	t.Run("header time", func(t *testing.T) {
		conn := dial(t)
		defer conn.CloseWithError(0, "")
		stream, err := conn.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		stream.Write([]byte{1, 60, 0, 0}) // HEADERS of 60 bytes, of which 58 never come
		stream.SetReadDeadline(time.Now().Add(patience))
		_, err = stream.Read(make([]byte, 1))
		var reset *quic.StreamError
		if !errors.As(err, &reset) {
			t.Errorf("a slow header: got %v, want a reset", err)
		}
	})
	t.Run("body or none", func(t *testing.T) {
		visitor := s.visitor3(t)
		defer visitor.CloseIdleConnections()
		never, end := io.Pipe()
		defer end.Close()
		for want, fields := range map[int]http.Header{
			http.StatusRequestTimeout: {},
			http.StatusOK:             {"Expect": {"100-continue"}}, // it waits to be asked for
		} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https, never)
			req.Header = fields
			resp, err := visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("with %v: status %d, want %d", fields, resp.StatusCode, want)
			}
		}
	})
	t.Run("connections of an address", func(t *testing.T) {
		var held []*quic.Conn
		defer func() {
			for _, c := range held {
				c.CloseWithError(0, "")
			}
		}()
		eventually(t, "earlier connections are gone", func() bool { return s.edge.Figures().Connections == 0 })
		for range 4 {
			held = append(held, dial(t))
		}
		if c, err := try(); err == nil {
			c.CloseWithError(0, "")
			t.Error("a fifth connection is let in")
		}
	})
	eventually(t, "connections are counted out", func() bool { return s.edge.Figures().Connections == 0 })
	if n := s.edge.Figures().TurnedAway; n == 0 {
		t.Error("nobody was counted as turned away")
	}
}

// TestIdleTimeIsBetweenRequests uses origins that take longer to answer than a connection
// may go without a request.
func TestIdleTimeIsBetweenRequests(t *testing.T) {
	t.Parallel() // most of it is waiting
	cfg := testConfig(t.TempDir())
	cfg.Limits.IdleTime = "1s"
	s := startSite(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(3 * time.Second) // the visitor is silent for as long
		io.WriteString(w, "late")
	}))
	var visitors sync.WaitGroup
	for version, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		visitors.Go(func() {
			resp, err := visitor.Get(s.https)
			if err != nil {
				t.Errorf("by %s: %v", version, err)
				return
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "late" {
				t.Errorf("by %s: status %d, %q, %v", version, resp.StatusCode, body, err)
			}
		})
	}
	visitors.Wait()
	eventually(t, "connections without a request are ended", func() bool { return s.edge.Figures().Connections == 0 })
}

func TestHTTP3DrainsAsTheRestDoes(t *testing.T) {
	release := make(chan struct{})
	s := startSiteOn(t, startRelayDraining(t, testConfig(t.TempDir()), 50*time.Second), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first ")
		http.NewResponseController(w).Flush()
		if r.URL.Path == "/long" {
			<-release
		}
		io.WriteString(w, "last")
	}))
	idle, busy := s.visitor3(t), s.visitor3(t)
	if status, body := get(t, idle, s.https); status != 200 || body != "first last" {
		t.Fatalf("status %d, %q", status, body)
	}
	resp, err := busy.Get(s.https + "/long")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	done := make(chan error, 1)
	go func() { done <- s.stop() }()
	eventually(t, "the idle visitor is let go", func() bool { return s.edge.Figures().Connections == 1 })
	select {
	case err := <-done:
		t.Fatalf("the relay ended before its visitor: %v", err)
	default:
	}
	close(release)
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "first last" {
		t.Errorf("got %q, %v", body, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOnePortForAgentsAndVisitors serves DTLS, QUIC, the agents' TLS and HTTPS on one
// port.
func TestOnePortForAgentsAndVisitors(t *testing.T) {
	for _, kind := range []link.Transport{link.DTLS, link.TLS} {
		t.Run(string(kind), func(t *testing.T) {
			saved := transport
			transport = kind
			defer func() { transport = saved }()
			cfg := testConfig(t.TempDir())
			cfg.TunnelListen = freeport.Loopback(t)
			cfg.EdgeHTTPSListen = cfg.TunnelListen
			s := startSite(t, cfg, text("hello"))
			if got := s.agent.session.Transport(); got != kind {
				t.Fatalf("the agent came by %s", got)
			}
			if s.Addrs().Tunnel != s.Addrs().HTTPS {
				t.Fatalf("addresses %+v", s.Addrs())
			}
			for name, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
				if status, body := get(t, visitor, s.https); status != 200 || body != "hello" {
					t.Errorf("%s: status %d, %q", name, status, body)
				}
			}
			if n := s.edge.Figures().Connections; n != 2 {
				t.Errorf("%d visitors are counted, want 2: an agent is none", n)
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBrokenResponsesLookBroken uses an origin that ends half-way through a response of
// unknown length.
func TestBrokenResponsesLookBroken(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half of it")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	for name, visitor := range map[string]*http.Client{"HTTP/1.1": s.visitor, "HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		base := s.https
		if name == "HTTP/1.1" {
			base = s.http
		}
		resp, err := visitor.Get(base)
		if err != nil && name == "HTTP/3" {
			continue // the reset of a stream may overtake what came before
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil {
			t.Errorf("%s: %q looks whole", name, body)
		}
	}
}

func TestGRPCOverHTTP3ReachesTheOriginByHTTP2(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	g := s.agent.mustClaim("grpc", wire.Claim{Type: wire.TypeHTTPS, Domain: "grpc"}, startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		io.Copy(w, r.Body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, g.PublicURL+"/pkg.Service/Method", strings.NewReader("\x00\x00\x00\x00\x02hi"))
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	resp, err := s.visitor3(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "\x00\x00\x00\x00\x02hi" || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("got %q, trailer %v", body, resp.Trailer)
	}
}

// startH2C serves a handler over HTTP/2 only, without TLS.
func startH2C(tb testing.TB, h http.Handler) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	go s.Serve(ln)
	tb.Cleanup(func() { s.Close() })
	return ln.Addr().String()
}

func TestOriginsByHTTP2(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	g := s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTPS, Domain: "h2c", HTTP2: true, HostHeader: "inner.example"}, startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode([]string{r.Proto, r.Host, r.Header.Get("X-Forwarded-Proto")})
	})))
	for name, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		if status, body := get(t, visitor, g.PublicURL); status != 200 || strings.TrimSpace(body) != `["HTTP/2.0","inner.example","https"]` {
			t.Errorf("%s: status %d, %s", name, status, body)
		}
	}
}

// TestHTTP2OriginsAreAskedByWhoOffersToChangeToIt sends a visitor's offer to change to
// HTTP/2 without TLS. It is not passed on: the origin, which speaks only HTTP/2, is used
// as always.
func TestHTTP2OriginsAreAskedByWhoOffersToChangeToIt(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	g := s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTP, Domain: "h2c", HTTP2: true}, startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s%s%s%s", r.Proto, r.Header["Upgrade"], r.Header["Connection"], r.Header["Http2-Settings"])
	})))
	for name, fields := range map[string]http.Header{
		"h2c":                   {"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {"h2c"}, "Http2-Settings": {"AAMAAABkAAQAoAAAAAIAAAAA"}},
		"a field that is loose": {"Upgrade": {"websocket"}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.PublicURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = fields
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || string(body) != "HTTP/2.0[][][]" {
			t.Errorf("%s: status %d, %s", name, resp.StatusCode, body)
		}
	}
}

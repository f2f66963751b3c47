package relay

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/roster"
	"adit/tunnel/wire"
)

func problem(tb testing.TB, err error, code string) *wire.Problem {
	tb.Helper()
	var p *wire.Problem
	if !errors.As(err, &p) || p.Code != code {
		tb.Errorf("got %v (%T), want code %s", err, err, code)
		return &wire.Problem{}
	}
	return p
}

func TestSameBytesOverHTTPAndHTTPS(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	origin := startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s|%x", r.Method, r.Host, r.URL, sha256.Sum256(body))
	}))
	if a.welcome.Domain != "relay.test" || a.welcome.ClientName != "shop" {
		t.Errorf("welcome: %+v", a.welcome)
	}
	v := r.visitor(t)
	for _, kind := range []string{wire.TypeHTTP, wire.TypeHTTPS} {
		g := a.mustClaim("k-"+kind, wire.Claim{Type: kind, Domain: "shop"}, origin)
		if !strings.HasPrefix(g.PublicURL, kind+"://shop.relay.test:") {
			t.Errorf("public_url %q", g.PublicURL)
		}
		for _, size := range []int{0, 1, 100_000, 20 << 20} {
			body := make([]byte, size)
			rand.Read(body)
			resp, err := v.Post(g.PublicURL+"/a%2Fb?x=1;y=2", "", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			host := strings.TrimPrefix(g.PublicURL, kind+"://")
			if want := fmt.Sprintf("POST %s /a%%2Fb?x=1;y=2|%x", host, sha256.Sum256(body)); string(got) != want {
				t.Errorf("%s %d bytes: got %q, want %q", kind, size, got, want)
			}
		}
	}
}

func TestHelloIsAskedFor(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	wrong := token
	wrong.Secret[0] ^= 1
	_, err := dialAgent(t, wrong, "i1")
	problem(t, err, wire.CodeUnauthorized)

	a := connect(t, token, "i1")
	problem(t, a.call(http.MethodPost, wire.PathHello, wire.Hello{Protocol: wire.Protocol, Secret: token.Secret[:], Instance: "i2"}, nil), wire.CodeUnauthorized)
}

func TestRevocationEndsSessionsAndFreesNames(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	a := connect(t, token, "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	start := time.Now()
	if _, err := r.Clients().Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if e := a.event(wire.EventRevoked); e.Reason == "" || e.RetryAfter != 0 {
		t.Errorf("got %+v, want a reason, and no word of trying again", e)
	}
	select {
	case <-a.session.Done():
	case <-time.After(patience):
		t.Fatal("the session lives on")
	}
	t.Logf("the session ended after %v", time.Since(start))
	_, err := dialAgent(t, token, "i1")
	problem(t, err, wire.CodeUnauthorized)
	b := connect(t, r.client(t, "other"), "i2")
	b.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
}

func TestTwoAgentsClaimOneName(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	a, b := connect(t, token, "i1"), connect(t, token, "i2")
	other := connect(t, r.client(t, "other"), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop.relay.test"}, "")
	_, err := b.claim("k", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, "")
	if p := problem(t, err, wire.CodeTaken); p.Field != "domain" {
		t.Errorf("field %q", p.Field)
	}
	_, err = other.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	problem(t, err, wire.CodeTaken)
	if err := a.call(http.MethodDelete, wire.PathClaims+"k", nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err = other.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, ""); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
}

// That all ports are taken is an answer that trying again does not change.
func TestNoFreePortIsARefusal(t *testing.T) {
	cfg := testConfig(t.TempDir())
	ports, _ := config.ParsePorts(cfg.TCPPorts)
	cfg.TCPPorts = fmt.Sprintf("%d-%d", ports.First, ports.First)
	a := connect(t, startRelay(t, cfg).client(t, "shop"), "i1")
	a.mustClaim("k1", wire.Claim{Type: wire.TypeTCP}, "127.0.0.1:1")
	_, err := a.claim("k2", wire.Claim{Type: wire.TypeTCP}, "")
	problem(t, err, wire.CodeLimit)
}

func TestClaimsThatAreRefused(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.UDPPorts = "none"
	r := startRelay(t, cfg)
	a := connect(t, r.client(t, "shop"), "i1")
	ports, _ := config.ParsePorts(cfg.TCPPorts)
	busy, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports.First))
	if err != nil {
		t.Skipf("the port is in use: %v", err)
	}
	defer busy.Close()
	for name, c := range map[string]struct {
		claim       wire.Claim
		code, field string
	}{
		"type":             {wire.Claim{Type: "ftp"}, wire.CodeInvalid, "type"},
		"mode":             {wire.Claim{Type: "http", Mode: "odd"}, wire.CodeInvalid, "mode"},
		"port of http":     {wire.Claim{Type: "http", RemotePort: 1}, wire.CodeInvalid, "remote_port"},
		"bad label":        {wire.Claim{Type: "http", Domain: "a_b"}, wire.CodeInvalid, "domain"},
		"foreign domain":   {wire.Claim{Type: "http", Domain: "www.example.com"}, wire.CodeForbidden, "domain"},
		"the relay's name": {wire.Claim{Type: "http", Domain: "relay.test"}, wire.CodeForbidden, "domain"},
		"outside of range": {wire.Claim{Type: "tcp", RemotePort: 22}, wire.CodeForbidden, "remote_port"},
		"no udp":           {wire.Claim{Type: "udp"}, wire.CodeForbidden, "type"},
		"port in use":      {wire.Claim{Type: "tcp", RemotePort: ports.First}, wire.CodeTaken, "remote_port"},
		"host header":      {wire.Claim{Type: "http", HostHeader: "a b"}, wire.CodeInvalid, "host_header"},
		"open bracket":     {wire.Claim{Type: "http", HostHeader: "[::1"}, wire.CodeInvalid, "host_header"},
		// A line between nodes would have no room for it.
		"many brackets": {wire.Claim{Type: "http", HostHeader: strings.Repeat("[", 60_000) + "::1"}, wire.CodeInvalid, "host_header"},
		"many zeros":    {wire.Claim{Type: "http", HostHeader: "app.local:" + strings.Repeat("0", 60_000) + "80"}, wire.CodeInvalid, "host_header"},
		"zeros of paths": {
			wire.Claim{Type: "http", Paths: []wire.ClaimPath{{Path: "/api", HostHeader: "[::1]:" + strings.Repeat("0", 60_000) + "80"}}}, wire.CodeInvalid, "paths",
		},
	} {
		_, err := a.claim("k", c.claim, "")
		if p := problem(t, err, c.code); p.Field != c.field {
			t.Errorf("%s: field %q, want %q (%s)", name, p.Field, c.field, p.Message)
		}
	}
	if claims := r.store.Claims.List(); len(claims) != 0 {
		t.Errorf("refused claims are kept: %+v", claims)
	}
}

// busy makes another program take a port once the relay has released it.
func busy(t *testing.T, port int) {
	t.Helper()
	eventually(t, "the port is closed", func() bool {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err == nil
	})
}

// TestSharedPortThatDoesNotOpenIsNotKept makes another program take the port that the
// tunnel of an absent agent shares.
func TestSharedPortThatDoesNotOpenIsNotKept(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	away := connect(t, token, "away")
	shared := wire.Claim{Type: wire.TypeTCP, Mode: wire.ModeBalanced}
	g := away.mustClaim("k", shared, "")
	away.session.Close("away")
	busy(t, g.RemotePort)
	shared.RemotePort = g.RemotePort
	_, err := connect(t, token, "here").claim("k", shared, "")
	problem(t, err, wire.CodeTaken)
	for _, c := range r.store.Claims.List() {
		for _, h := range c.Holders {
			if h.Instance != "away" {
				t.Errorf("%s is kept for the agent that was refused: %+v", c.Target, h)
			}
		}
	}
}

// TestNameOfAnAgentThatIsAwayStaysItsClients refuses a port to the agent that was to
// replace the one that had it.
func TestNameOfAnAgentThatIsAwayStaysItsClients(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	away := connect(t, token, "away")
	claim := wire.Claim{Type: wire.TypeTCP}
	g := away.mustClaim("k", claim, "")
	away.session.Close("away")
	busy(t, g.RemotePort)
	claim.RemotePort = g.RemotePort
	long := roster.Agent{Client: away.welcome.ClientID, Instance: "away"}
	eventually(t, "the agent is away", func() bool {
		away, _ := r.roster.Away(long)
		return away
	})
	r.roster.Left(long, time.Now().Add(-2*awayTime))
	_, err := connect(t, token, "here").claim("k", claim, "")
	if p := problem(t, err, wire.CodeTaken); strings.Contains(p.Message, "another tunnel") {
		t.Fatalf("got %q, want the port's refusal", p.Message)
	}
	if len(r.store.Claims.List()) != 1 {
		t.Errorf("the client has %v, want the port that it had", r.store.Claims.List())
	}
}

func TestClaimsLiveThroughRestart(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TunnelListen, cfg.EdgeHTTPListen = freeport.Loopback(t), freeport.Loopback(t)
	r := startRelay(t, cfg)
	token := r.client(t, "shop")
	a := connect(t, token, "i1")
	named := a.mustClaim("named", wire.Claim{Type: wire.TypeHTTP}, "")
	port := a.mustClaim("port", wire.Claim{Type: wire.TypeTCP}, "")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	startRelay(t, cfg)
	a = connect(t, token, "i1")
	if g := a.mustClaim("named", wire.Claim{Type: wire.TypeHTTP}, ""); g.PublicURL != named.PublicURL {
		t.Errorf("got %s, had %s", g.PublicURL, named.PublicURL)
	}
	if g := a.mustClaim("port", wire.Claim{Type: wire.TypeTCP}, ""); g.PublicURL != port.PublicURL {
		t.Errorf("got %s, had %s", g.PublicURL, port.PublicURL)
	}
}

func TestOlderSessionGivesWayWithoutGap(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	a := connect(t, token, "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("old")))
	v := r.visitor(t)
	stop := make(chan struct{})
	var visiting sync.WaitGroup
	visiting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			resp, err := v.Get(g.PublicURL)
			if err != nil {
				t.Errorf("a visitor: %v", err)
				return
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("status %d: %s", resp.StatusCode, body)
			}
		}
	})
	b := connect(t, token, "i1")
	b.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("new")))
	eventually(t, "the newer session serves", func() bool { _, body := get(t, v, g.PublicURL); return body == "new" })
	select {
	case <-a.session.Done():
	case <-time.After(patience):
		t.Error("the older session lives on")
	}
	close(stop)
	visiting.Wait()
	if _, body := get(t, v, g.PublicURL); body != "new" {
		t.Errorf("after the older session: got %q", body)
	}
}

func TestBalancedShares(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	a, b := connect(t, token, "i1"), connect(t, token, "i2")
	claim := wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeBalanced, Domain: "shop"}
	g := a.mustClaim("k", claim, startOrigin(t, text("a")))
	b.mustClaim("k", claim, startOrigin(t, text("b")))
	v, seen := r.visitor(t), map[string]int{}
	for range 20 {
		_, body := get(t, v, g.PublicURL)
		seen[body]++
	}
	if seen["a"] < 5 || seen["b"] < 5 {
		t.Errorf("shared as %v", seen)
	}
	b.mustClaim("k", claim, "127.0.0.1:1") // its origin is down: the other serves
	for range 10 {
		if status, body := get(t, v, g.PublicURL); status != 200 || body != "a" {
			t.Errorf("with one origin down: %d %q", status, body)
		}
	}
	b.close()
	eventually(t, "the other agent leaves", func() bool { return len(r.edge.Endpoints()[0].Backends()) == 1 })
	if _, body := get(t, v, g.PublicURL); body != "a" {
		t.Errorf("got %q", body)
	}
}

func TestTCPHalfClose(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { // answers once it has read all
				defer c.Close()
				sum := sha256.New()
				io.Copy(sum, c)
				c.Write(sum.Sum(nil))
			}()
		}
	}()
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeTCP}, ln.Addr().String())
	data := make([]byte, 5<<20)
	rand.Read(data)
	conn, err := net.Dial("tcp", hostOf(t, g.PublicURL))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write(data); err != nil {
		t.Fatal(err)
	}
	conn.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(conn)
	if want := sha256.Sum256(data); err != nil || !bytes.Equal(got, want[:]) {
		t.Errorf("got %x, %v; want %x", got, err, want)
	}
	down := a.mustClaim("down", wire.Claim{Type: wire.TypeTCP}, "127.0.0.1:1")
	conn, err = net.Dial("tcp", hostOf(t, down.PublicURL))
	if err != nil {
		return // reset before the system had handed it out
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("origin down: read %d, %v; want the connection broken", n, err)
	}
}

func TestTLSIsPassedThrough(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	cert, err := r.authority.Issue("secret.relay.test")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: text("end to end")}
	go s.Serve(ln)
	defer s.Close()
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeTLS, Domain: "secret"}, ln.Addr().String())
	beside := a.mustClaim("k2", wire.Claim{Type: wire.TypeHTTPS, Domain: "open"}, startOrigin(t, text("by the edge")))
	conn, err := tls.Dial("tcp", hostOf(t, g.PublicURL), &tls.Config{ServerName: "secret.relay.test", InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().PeerCertificates[0]; !got.Equal(cert.Leaf) {
		t.Errorf("the certificate is of %v, want the origin's own", got.Subject)
	}
	if _, body := get(t, r.visitor(t), beside.PublicURL); body != "by the edge" {
		t.Errorf("the https tunnel beside it: %q", body)
	}
	if _, err := tls.Dial("tcp", hostOf(t, g.PublicURL), &tls.Config{ServerName: "nobody.relay.test", InsecureSkipVerify: true}); err == nil {
		t.Error("a name that nobody claimed got a certificate")
	}
}

func TestUDPFlows(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeUDP}, "echo")
	var visitors [3]net.Conn
	for i := range visitors {
		c, err := net.Dial("udp", hostOf(t, g.PublicURL))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		visitors[i] = c
	}
	for _, size := range []int{1, 1200, 9000} {
		for i, c := range visitors {
			want := bytes.Repeat([]byte{byte(i + 1)}, size)
			buf := make([]byte, 65535)
			got := 0
			for try := 0; got != size && try < 10; try++ {
				c.Write(want)
				c.SetReadDeadline(time.Now().Add(2 * time.Second))
				n, err := c.Read(buf)
				if err == nil && bytes.Equal(buf[:n], want) {
					got = n
				}
			}
			if got != size {
				t.Errorf("visitor %d: no echo of %d bytes", i, size)
			}
		}
	}
	if c := r.edge.Endpoints()[0].Counters(); c.Open != 3 {
		t.Errorf("%d flows, want 3", c.Open)
	}
}

func TestUDPIsNoAmplifier(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeUDP}, "flood")
	c, err := net.Dial("udp", hostOf(t, g.PublicURL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 5 {
		c.Write([]byte("0123456789"))
	}
	ep := r.edge.Endpoints()[0]
	eventually(t, "the packets arrive", func() bool { return ep.Counters().BytesIn == 50 })
	c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := c.Read(make([]byte, 2000)); err == nil && n+28 > 3*5*(10+28) {
		t.Errorf("%d bytes came back for 50 in five packets", n)
	}
	eventually(t, "the agent is told of it", func() bool { return a.withheld.Load() == 1 })
}

func TestDrainLetsRequestsFinish(t *testing.T) {
	r := startRelayDraining(t, testConfig(t.TempDir()), 50*time.Second)
	a := connect(t, r.client(t, "shop"), "i1")
	begun, finish := make(chan struct{}), make(chan struct{})
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-finish
		io.WriteString(w, "finished")
	})))
	v := r.visitor(t)
	result := make(chan string, 1)
	go func() {
		resp, err := v.Get(g.PublicURL)
		if err != nil {
			result <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		result <- string(body)
	}()
	select {
	case <-begun:
	case body := <-result:
		t.Fatalf("the request ended early: %s", body)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	a.event(wire.EventDrain)
	close(finish)
	select {
	case body := <-result:
		if body != "finished" {
			t.Errorf("got %q", body)
		}
	case <-time.After(patience):
		t.Fatal("the request hangs")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

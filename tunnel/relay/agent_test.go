package relay

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/config"
	"adit/tunnel/wire"
)

const patience = 40 * time.Second

// transport is what the fake agents dial with; the race of both, as agents do.
var transport = link.Transport(os.Getenv("ADIT_TEST_TRANSPORT"))

// testRelay is a relay on loopback, which is stopped when the test ends.
type testRelay struct {
	*Relay
	stop func() error
}

func testConfig(dir string) config.Config {
	cfg := config.Defaults()
	cfg.Domain, cfg.PublicHost, cfg.DataDir = "relay.test", "127.0.0.1", dir
	cfg.TunnelListen, cfg.EdgeHTTPListen, cfg.EdgeHTTPSListen, cfg.ConsoleListen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.Nodes.Listen, cfg.Nodes.Leave = "127.0.0.1:0", "0s"
	first := 21000 + os.Getpid()%110*100 // below what systems give out by themselves, and beside what freeport gives
	cfg.TCPPorts = fmt.Sprintf("%d-%d", first, first+99)
	cfg.UDPPorts = cfg.TCPPorts
	return cfg
}

func startRelay(tb testing.TB, cfg config.Config) *testRelay {
	tb.Helper()
	return startRelayWith(tb, Options{Config: cfg})
}

func startRelayDraining(tb testing.TB, cfg config.Config, drain time.Duration) *testRelay {
	tb.Helper()
	return startRelayWith(tb, Options{Config: cfg, Drain: drain})
}

func startRelayWith(tb testing.TB, opts Options) *testRelay {
	tb.Helper()
	opts.Version = "test"
	opts.visitorGrace = cmp.Or(opts.visitorGrace, -1) // no test that is not of it waits for nobody
	if opts.Drain == 0 {
		opts.Drain = 5 * time.Second
	}
	if opts.Log == nil && os.Getenv("ADIT_TEST_LOG") != "" {
		opts.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	r, err := New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var once sync.Once
	var result error
	stop := func() error {
		once.Do(func() {
			cancel()
			select {
			case result = <-done:
			case <-time.After(60 * time.Second):
				result = errors.New("the relay did not end")
				stacks := make([]byte, 1<<20)
				tb.Logf("what it does:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
		})
		return result
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Errorf("the relay ended with: %v", err)
		}
	})
	return &testRelay{r, stop}
}

func (r *testRelay) client(tb testing.TB, name string) wire.Token {
	tb.Helper()
	_, token, err := r.Clients().Add(context.Background(), name, Scope{})
	if err != nil {
		tb.Fatal(err)
	}
	return token
}

// fakeAgent is the agent's side of the protocol, as short as it can be.
type fakeAgent struct {
	tb      testing.TB
	session link.Session
	http    *http.Client
	welcome wire.Welcome
	events  chan wire.Event

	mu      sync.Mutex
	origins map[uint32]string // number → address
	paths   map[string]string // of claims, for all numbers → address
	wg      sync.WaitGroup
	cancel  context.CancelFunc
	deaf    atomic.Int32 // streams for originDeaf
	open    atomic.Int32 // streams that are forwarded now

	heard chan wire.Flow // packets of its own visits, as far as there is room
	asked chan wire.Flow // the newest packet of a visitor, without what it says
	whose sync.Map       // number of a flow → wire.From

	withheld atomic.Int32 // flows whose answers were not all passed on

	visitors sync.Map // address of this end of a connection to an origin → the visitor's
}

// originDeaf is an origin whose streams the agent accepts and never answers.
const originDeaf = "deaf"

func dialAgent(tb testing.TB, token wire.Token, instance string) (*fakeAgent, error) {
	tb.Helper()
	return dialAgentBy(tb, token, instance, link.DialConfig{Transport: transport})
}

// dialAgentBy is dialAgent with further options for dialling.
func dialAgentBy(tb testing.TB, token wire.Token, instance string, cfg link.DialConfig) (*fakeAgent, error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cfg.Relay, cfg.Fingerprint = token.Relay, token.Fingerprint
	s, err := link.Dial(ctx, cfg)
	if err != nil {
		cancel()
		return nil, err
	}
	a := &fakeAgent{tb: tb, session: s, origins: make(map[uint32]string), cancel: cancel, events: make(chan wire.Event, 1000), heard: make(chan wire.Flow, 100), asked: make(chan wire.Flow, 1)}
	a.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.OpenStream(ctx) }}}
	a.wg.Go(func() { a.serve(ctx) })
	a.wg.Go(func() { a.datagrams(ctx) })
	tb.Cleanup(a.close)
	err = a.call(http.MethodPost, wire.PathHello, wire.Hello{
		Protocol: wire.Protocol, Secret: token.Secret[:], Instance: instance, Version: "test", OS: "linux", Arch: "amd64",
	}, &a.welcome)
	if err != nil {
		a.close()
		return nil, err
	}
	a.wg.Go(func() { a.readEvents(ctx) })
	return a, nil
}

func connect(tb testing.TB, token wire.Token, instance string) *fakeAgent {
	tb.Helper()
	a, err := dialAgent(tb, token, instance)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func (a *fakeAgent) close() {
	a.cancel()
	a.session.Close("test over")
	a.http.CloseIdleConnections()
	a.wg.Wait()
}

// call makes a request on the control plane.
func (a *fakeAgent) call(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://relay"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		var p wire.Problem
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			return fmt.Errorf("status %d without a problem: %w", resp.StatusCode, err)
		}
		return &p
	}
	if out != nil {
		return json.NewDecoder(resp.Body).Decode(out)
	}
	return nil
}

func (a *fakeAgent) claim(key string, c wire.Claim, origin string) (wire.Grant, error) {
	if c.Mode == "" {
		c.Mode = wire.ModeStandard
	}
	var g wire.Grant
	err := a.call(http.MethodPut, wire.PathClaims+key, c, &g)
	a.mu.Lock()
	a.origins[g.Number] = origin
	a.mu.Unlock()
	return g, err
}

func (a *fakeAgent) mustClaim(key string, c wire.Claim, origin string) wire.Grant {
	a.tb.Helper()
	g, err := a.claim(key, c, origin)
	if err != nil {
		a.tb.Fatalf("claim %s: %v", key, err)
	}
	return g
}

// leads sends the streams for a claim's paths to origins other than the claim's own.
func (a *fakeAgent) leads(paths map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paths = paths
}

func (a *fakeAgent) readEvents(ctx context.Context) {
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://relay"+wire.PathEvents, nil)
	resp, err := a.http.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var e wire.Event
		if dec.Decode(&e) != nil {
			return
		}
		select {
		case a.events <- e:
		default:
		}
	}
}

// event waits for an event of a type.
func (a *fakeAgent) event(kind string) wire.Event {
	a.tb.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-a.events:
			if e.Type == kind {
				return e
			}
		case <-limit:
			a.tb.Fatalf("no %s event came", kind)
		}
	}
}

func (a *fakeAgent) serve(ctx context.Context) {
	for {
		s, err := a.session.AcceptStream(ctx)
		if err != nil {
			return
		}
		a.wg.Go(func() { a.forward(s) })
	}
}

func (a *fakeAgent) forward(s link.Stream) {
	a.open.Add(1)
	defer a.open.Add(-1)
	defer s.Close()
	p, err := wire.ReadPreface(s)
	if err != nil {
		s.Reset()
		return
	}
	// The grant may be on its way to claim yet.
	origin, ok := "", false
	for range 200 {
		a.mu.Lock()
		origin, ok = a.origins[p.Endpoint]
		a.mu.Unlock()
		if ok {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if p.Path != "" {
		a.mu.Lock()
		origin, ok = a.paths[p.Path]
		a.mu.Unlock()
		if !ok {
			s.Write(wire.AppendAnswer(nil, errors.New("this tunnel has no path "+p.Path)))
			return
		}
	}
	if origin == originDeaf {
		a.deaf.Add(1)
		io.Copy(io.Discard, s)
		<-a.session.Done()
		return
	}
	conn, err := net.Dial("tcp", origin)
	if err == nil {
		a.visitors.Store(conn.LocalAddr().String(), p.Visitor.String())
	}
	s.Write(wire.AppendAnswer(nil, err))
	if err != nil {
		return
	}
	defer conn.Close()
	var both sync.WaitGroup
	both.Go(func() { io.Copy(conn, s); conn.(*net.TCPConn).CloseWrite() })
	both.Go(func() {
		if _, err := io.Copy(s, conn); err != nil {
			s.Reset()
		}
		s.CloseWrite()
	})
	both.Wait()
}

// datagrams answers each packet of a udp visitor as origin says: "echo", or "flood" for a
// hundred times as many.
func (a *fakeAgent) datagrams(ctx context.Context) {
	buf := make([]byte, 65535)
	var parts wire.Reassembly
	var scratch []byte
	packet := uint16(0)
	for {
		n, err := a.session.ReceiveDatagram(ctx, buf)
		if err != nil {
			return
		}
		f, err := wire.ParseFlow(buf[:n])
		if err != nil {
			a.tb.Errorf("datagram from the relay: %v", err)
			continue
		}
		if f.Kind == wire.FlowWithheld {
			a.withheld.Add(1)
			continue
		}
		if who, err := wire.ParseFrom(f.Payload); f.Kind == wire.FlowFrom && err == nil {
			a.whose.Store(f.Number, who)
		}
		payload := parts.Add(f)
		if payload == nil {
			continue
		}
		if f.Endpoint == wire.EndpointVisits {
			select {
			case a.heard <- wire.Flow{Number: f.Number, Payload: bytes.Clone(payload)}:
			default:
			}
			continue
		}
		select {
		case <-a.asked:
		default:
		}
		a.asked <- wire.Flow{Endpoint: f.Endpoint, Number: f.Number}
		a.mu.Lock()
		origin := a.origins[f.Endpoint]
		a.mu.Unlock()
		if origin == "flood" {
			payload = bytes.Repeat(payload, 100)
		}
		packet++
		out := wire.Flow{Endpoint: f.Endpoint, Number: f.Number, Packet: packet, Payload: bytes.Clone(payload)}
		scratch, _ = wire.SplitFlow(scratch, out, a.session.MaxDatagram(), a.session.SendDatagram)
	}
}

// visitor returns an HTTP client that resolves every name to the relay's edge.
func (r *testRelay) visitor(tb testing.TB) *http.Client {
	tb.Helper()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(r.CAFile())
	if err != nil {
		tb.Fatal(err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		tb.Fatal("ca.pem has no certificate")
	}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(addr)
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
		TLSClientConfig:   &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2: true,
	}
	tb.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: 2 * patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func get(tb testing.TB, c *http.Client, url string) (int, string) {
	tb.Helper()
	resp, err := c.Get(url)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// serveEach starts an origin that does not speak HTTP. It passes each connection to
// serve, and closes it afterwards.
func serveEach(tb testing.TB, serve func(net.Conn)) (addr string) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return ln.Addr().String()
}

// startOrigin serves a handler and returns its address.
func startOrigin(tb testing.TB, h http.Handler) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(ln)
	tb.Cleanup(func() { s.Close() })
	return ln.Addr().String()
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, s) })
}

// eventually waits until f is true.
func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	limit := time.Now().Add(patience)
	for !f() {
		if time.Now().After(limit) {
			tb.Fatalf("did not happen: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// recorded waits until the newest access event is as expected: an event is written after
// the visitor has its answer.
func recorded(tb testing.TB, r *Relay, what string, holds func(e wire.Access) bool) {
	tb.Helper()
	var newest []wire.Access
	limit := time.Now().Add(patience)
	for {
		newest = searched(r, func(*wire.Access) bool { return true }, 1)
		if len(newest) == 1 && holds(newest[0]) {
			return
		}
		if time.Now().After(limit) {
			tb.Fatalf("%s: recorded %+v", what, newest)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func hostOf(tb testing.TB, publicURL string) string {
	tb.Helper()
	u, err := url.Parse(publicURL)
	if err != nil {
		tb.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", u.Port())
}

// lines reads lines of a connection one by one.
func lines(r io.Reader) func() (string, error) {
	b := bufio.NewReader(r)
	return func() (string, error) { return b.ReadString('\n') }
}

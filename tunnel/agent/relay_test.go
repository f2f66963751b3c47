package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// fakeRelay speaks wire over link, and does as its test wishes.
type fakeRelay struct {
	t         *testing.T
	authority *link.Authority
	addr      string
	secret    [wire.SecretSize]byte
	keepAlive time.Duration

	mu        sync.Mutex
	stop      context.CancelFunc
	stopped   chan struct{}
	sessions  []*fakeSession // newest last
	hellos    []wire.Hello
	claims    map[string]wire.Claim // of all sessions, by key
	kept      map[string]bool       // released with keep
	numbers   map[string]uint32
	next      uint32
	refuse    *wire.Problem // of Hello
	onClaim   func(key string, c wire.Claim) *wire.Problem
	onGrant   func(*wire.Grant)
	hold      chan struct{} // claims wait for its end, if set
	inTurn    bool          // claims and releases of a session are made one after another
	held      int           // how many claims have come to wait for it
	unable    int           // how many releases it cannot do
	reports   []wire.AgentError
	onPolicy  http.HandlerFunc           // of all claims; nil: the relay knows no policies
	onVisit   http.HandlerFunc           // nil: nobody is let in anywhere
	features  []string                   // that it says it has
	speeds    map[link.Transport]float64 // at which bytes come, as it says
	addresses []string
	ends      bool        // each session ends as soon as it is there
	sendsOff  bool        // each session is asked to move on as soon as it is there
	node      string      // its id; empty: a relay that knows no nodes
	nodes     []wire.Node // as it tells
}

type fakeSession struct {
	link.Session
	events   chan wire.Event
	claiming sync.Mutex // of a relay that does one after another
}

// turn waits until no other claim or release is made, if the relay makes one after another.
func (s *fakeSession) turn(r *fakeRelay) (over func()) {
	r.mu.Lock()
	inTurn := r.inTurn
	r.mu.Unlock()
	if !inTurn {
		return func() {}
	}
	s.claiming.Lock()
	return s.claiming.Unlock
}

// does has the relay say what it does from now on.
func (r *fakeRelay) does(features ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.features = features
}

func newFakeRelay(t *testing.T) *fakeRelay {
	t.Helper()
	authority, err := link.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	r := &fakeRelay{
		t: t, authority: authority, secret: [wire.SecretSize]byte{1, 2, 3},
		claims: map[string]wire.Claim{}, kept: map[string]bool{}, numbers: map[string]uint32{},
	}
	r.start()
	t.Cleanup(r.kill)
	return r
}

// start listens, on the address of before if there was one.
func (r *fakeRelay) start() {
	r.t.Helper()
	cert, err := r.authority.Issue("relay.test")
	if err != nil {
		r.t.Fatal(err)
	}
	if r.addr == "" {
		r.addr = freeport.Loopback(r.t) // it keeps free while the relay is away
	}
	l, err := link.Listen(link.ListenConfig{Addr: r.addr, Certificate: cert, KeepAlive: r.keepAlive})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.mu.Lock()
	r.stop, r.stopped = cancel, done
	r.mu.Unlock()
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer l.Close()
		for {
			s, err := l.Accept(ctx)
			if err != nil {
				return
			}
			fs := &fakeSession{Session: s, events: make(chan wire.Event, 16)}
			wg.Go(func() { r.serve(ctx, fs) })
		}
	}()
}

// kill ends the relay and all its sessions.
func (r *fakeRelay) kill() {
	r.mu.Lock()
	stop, done := r.stop, r.stopped
	sessions := r.sessions
	r.sessions = nil
	r.mu.Unlock()
	stop()
	for _, s := range sessions {
		s.Close("killed")
	}
	<-done
}

func (r *fakeRelay) token() wire.Token {
	return wire.Token{Relay: r.addr, Fingerprint: r.authority.Fingerprint(), Secret: r.secret}
}

// streams makes a session's streams a net.Listener.
type streams struct {
	ctx context.Context
	link.Session
}

func (s streams) Accept() (net.Conn, error) {
	stream, err := s.AcceptStream(s.ctx)
	if err != nil {
		return nil, err
	}
	return stream, nil
}
func (s streams) Addr() net.Addr { return s.LocalAddr() }
func (s streams) Close() error   { return nil }

func (r *fakeRelay) serve(ctx context.Context, s *fakeSession) {
	server := &http.Server{Handler: r.handler(s), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	server.Serve(streams{ctx, s.Session})
	server.Close()
}

func answer(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func (r *fakeRelay) handler(s *fakeSession) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathHello, func(w http.ResponseWriter, q *http.Request) {
		var h wire.Hello
		json.NewDecoder(q.Body).Decode(&h)
		r.mu.Lock()
		r.hellos = append(r.hellos, h)
		refuse := r.refuse
		if refuse == nil && string(h.Secret) != string(r.secret[:]) {
			refuse = &wire.Problem{Code: wire.CodeUnauthorized, Message: "the token is not known"}
		}
		if refuse == nil && !h.Trial {
			r.sessions = append(r.sessions, s)
		}
		if r.ends {
			time.AfterFunc(10*time.Millisecond, func() { s.Close("not here") }) // with the answer to the hello before it
		}
		if r.sendsOff {
			s.events <- wire.Event{Type: wire.EventDrain, Reason: "not here"}
		}
		if refuse == nil && h.Beside != "" && h.Beside == r.node {
			refuse = &wire.Problem{Code: wire.CodeHere, Message: "it is here already"}
		}
		addresses, node, nodes, features := r.addresses, r.node, r.nodes, r.features
		r.mu.Unlock()
		if refuse != nil {
			answer(w, http.StatusUnauthorized, refuse)
			return
		}
		answer(w, http.StatusOK, wire.Welcome{ClientID: "cli_1", ClientName: "test", Domain: "relay.test", Addresses: addresses, NodeID: node, Nodes: nodes, Features: features})
	})
	mux.HandleFunc("PUT "+wire.PathClaims+"{key}", func(w http.ResponseWriter, q *http.Request) {
		var c wire.Claim
		json.NewDecoder(q.Body).Decode(&c)
		key := path.Base(q.URL.Path)
		r.mu.Lock()
		hold, check := r.hold, r.onClaim
		if hold != nil {
			r.held++
		}
		r.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-q.Context().Done():
				return
			}
		}
		defer s.turn(r)()
		if check != nil {
			if p := check(key, c); p != nil {
				answer(w, http.StatusConflict, p)
				return
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.claims[key] = c
		delete(r.kept, key)
		if r.numbers[key] == 0 {
			r.next++
			r.numbers[key] = r.next
		}
		g := wire.Grant{EndpointID: "ep_" + key, Number: r.numbers[key]}
		if c.Mode == wire.ModePrivate {
			g.Domain = c.Domain
			if g.Domain == "" {
				g.Domain = fmt.Sprintf("random%d", r.next)
			}
			g.PublicURL = wire.PrivateURL("test", g.Domain)
		} else if c.Type == wire.TypeTCP || c.Type == wire.TypeUDP {
			g.RemotePort = c.RemotePort
			if g.RemotePort == 0 {
				g.RemotePort = 20000 + int(r.next)
			}
			g.PublicURL = fmt.Sprintf("%s://relay.test:%d", c.Type, g.RemotePort)
		} else {
			g.Domain = c.Domain
			if g.Domain == "" {
				g.Domain = fmt.Sprintf("random%d.relay.test", r.next)
			} else if !strings.Contains(g.Domain, ".") {
				g.Domain += ".relay.test"
			}
			g.PublicURL = c.Type + "://" + g.Domain
		}
		if r.onGrant != nil {
			r.onGrant(&g)
		}
		answer(w, http.StatusOK, g)
	})
	mux.HandleFunc("DELETE "+wire.PathClaims+"{key}", func(w http.ResponseWriter, q *http.Request) {
		key := path.Base(q.URL.Path)
		defer s.turn(r)()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.unable > 0 {
			r.unable--
			answer(w, http.StatusServiceUnavailable, &wire.Problem{Code: wire.CodeUnavailable, Message: "not now"})
			return
		}
		if q.URL.Query().Get("keep") == "1" {
			r.kept[key] = true
		} else {
			delete(r.claims, key)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET "+wire.PathEvents, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get(wire.ParamAccess) != wire.AccessNone {
			r.t.Error("the agent asks for access events, which it does not read")
		}
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		for {
			select {
			case <-q.Context().Done():
				return
			case <-s.Done():
				return
			case e := <-s.events:
				json.NewEncoder(w).Encode(e)
				http.NewResponseController(w).Flush()
			}
		}
	})
	mux.HandleFunc(wire.PathPolicy+"{key}", func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		on := r.onPolicy
		r.mu.Unlock()
		if on == nil {
			on = http.NotFound
		}
		on(w, q)
	})
	mux.HandleFunc(wire.PathVisit, func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		on := r.onVisit
		r.mu.Unlock()
		if on == nil {
			answer(w, http.StatusForbidden, &wire.Problem{Code: wire.CodeForbidden, Message: "nobody is let in"})
			return
		}
		on(w, q)
	})
	mux.HandleFunc("GET "+wire.PathInvitations, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, wire.Invitations{Tunnels: []string{"nas/ssh", "none such", "studio/files"}, UDP: []string{"studio/files"}})
	})
	mux.HandleFunc("GET "+wire.PathSpeed, func(w http.ResponseWriter, _ *http.Request) {
		const size = 100_000
		if s.Transport() == link.TLS {
			w.Write(make([]byte, size))
			return
		}
		for range 2 { // so slowly that the other is faster on any machine
			w.Write(make([]byte, size/1000))
			http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})
	mux.HandleFunc("POST "+wire.PathSpeed, func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		speed := r.speeds[s.Transport()]
		r.mu.Unlock()
		answer(w, http.StatusOK, wire.Speed{BytesPerSecond: speed})
	})
	mux.HandleFunc("POST "+wire.PathErrors, func(w http.ResponseWriter, q *http.Request) {
		var list []wire.AgentError
		json.NewDecoder(q.Body).Decode(&list)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reports = append(r.reports, list...)
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// session returns the newest session.
func (r *fakeRelay) session() *fakeSession {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) == 0 {
		return nil
	}
	return r.sessions[len(r.sessions)-1]
}

// drop ends the newest session and waits for the next.
func (r *fakeRelay) drop() {
	r.t.Helper()
	old := r.session()
	old.Close("again")
	eventually(r.t, "another session", func() bool { return r.session() != old })
}

func (r *fakeRelay) claim(key string) (wire.Claim, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.claims[key]
	return c, ok
}

func (r *fakeRelay) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

var (
	testVisitor = netip.MustParseAddrPort("192.0.2.7:4711")
	testEdge    = netip.MustParseAddrPort("192.0.2.1:443")
)

// visit opens a visitor's stream to the tunnel of key.
func (r *fakeRelay) visit(key string, kind wire.StreamKind) (link.Stream, error) {
	return r.visitPath(key, kind, "")
}

// visitPath is visit for a path of the tunnel.
func (r *fakeRelay) visitPath(key string, kind wire.StreamKind, path string) (link.Stream, error) {
	r.mu.Lock()
	number := r.numbers[key]
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := r.session().OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	b, err := wire.AppendPreface(nil, wire.Preface{Visitor: testVisitor, Edge: testEdge, Endpoint: number, Kind: kind, Path: path})
	if err != nil {
		return nil, err
	}
	if _, err := stream.Write(b); err != nil {
		return nil, err
	}
	stream.SetDeadline(time.Now().Add(patience))
	if err := wire.ReadAnswer(stream); err != nil {
		stream.Close()
		return nil, err
	}
	return stream, nil
}

func (r *fakeRelay) mustVisit(key string, kind wire.StreamKind) link.Stream {
	r.t.Helper()
	s, err := r.visit(key, kind)
	if err != nil {
		r.t.Fatalf("visit: %v", err)
	}
	r.t.Cleanup(s.Reset)
	return s
}

// patience is how long a test waits for what must come.
const patience = time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if ok() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// startAgent runs an agent until the test ends.
func startAgent(t *testing.T, cfg Config) (a *Agent, stop func()) {
	t.Helper()
	if cfg.StateDir == "" {
		cfg.StateDir = t.TempDir()
	}
	if cfg.Transport == link.Auto {
		cfg.Transport = link.TLS
	}
	if testing.Verbose() && cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a, runAgent(t, a)
}

func runAgent(t *testing.T, a *Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Run: got error %v, want nil", err)
				}
			case <-time.After(patience):
				t.Error("Run did not return after its context ended")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// disguised is a session that says it is over DTLS.
type disguised struct{ link.Session }

func (disguised) Transport() link.Transport { return link.DTLS }

// configured returns an agent with a session.
func configured(t *testing.T, r *fakeRelay, cfg Config) (*Agent, func()) {
	t.Helper()
	a, stop := startAgent(t, cfg)
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatalf("configure: %v", err)
	}
	return a, stop
}

// The files of the state folder.
const (
	authFile    = "auth.json"
	tunnelsFile = "tunnels.json"
)

// setWrite has the agent's state files written by write from now on.
func setWrite(a *Agent, write func(path string, data []byte, perm fs.FileMode) error) {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.state.Write = write
}

func mustCreate(t *testing.T, a *Agent, want definition.Tunnel) Tunnel {
	t.Helper()
	tun, err := a.Create(t.Context(), want)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return tun
}

// service is a local tcp service that does handle for each connection.
func service(t *testing.T, handle func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{} // cut at the end: a visitor that never reads would hold them for minutes
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() { defer c.Close(); handle(c) })
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

func echo(c net.Conn) {
	io.Copy(c, c)
	c.(*net.TCPConn).CloseWrite()
}

func wantCode(t *testing.T, err error, code, field string) {
	t.Helper()
	var e *refusal.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Fatalf("got error %#v, want code %s and field %q", err, code, field)
	}
}

func wantState(t *testing.T, a *Agent, state string) {
	t.Helper()
	eventually(t, "status "+state, func() bool { return a.Status().State == state })
}

func wantTunnel(t *testing.T, a *Agent, id, state string) Tunnel {
	t.Helper()
	var got Tunnel
	eventually(t, "tunnel "+state, func() bool { got, _ = a.Tunnel(id); return got.State == state })
	return got
}

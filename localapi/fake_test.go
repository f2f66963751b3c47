package localapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"adit/tunnel/agent"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/diagnosis"
	"adit/tunnel/agent/feed"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/splice"
	"adit/tunnel/agent/traffic"
	"adit/tunnel/agent/visits"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

var fakeTime = time.Date(2026, 5, 4, 10, 20, 30, 0, time.UTC)

// fakeAgent answers from memory. refuse, if set, is what every operation of the
// control plane refuses with.
type fakeAgent struct {
	mu       sync.Mutex
	refuse   error
	tunnels  []agent.Tunnel
	requests []inspect.Detail
	edits    []inspect.Edit
	patches  []definition.Patch
	expected http.Header // of the last policy
	specs    []definition.Tunnel
	filters  []inspect.Filter
	paused   bool
	har      string
	harErr   error         // after it
	holding  int           // holds that last
	gone     chan struct{} // what holders wait for; nil: holds end at once
	visiting chan string   // who was visited last, once that has ended; nil: nobody asks
	breaks   net.Conn      // is what visits are led to, and breaks with its end; nil: to the agent itself
}

func newFakeAgent() *fakeAgent {
	f := &fakeAgent{har: `{"log":{"version":"1.2","creator":{"name":"adit","version":"1"},"entries":[]}}`}
	f.tunnels = []agent.Tunnel{{
		ID: "t_1", Name: "shop", Type: "https", Mode: "standard", LocalIP: "127.0.0.1", LocalPort: 3000,
		RequestHeaders: definition.Headers(map[string]string{"X-Env": "prod", "Cookie": ""}),
		Paths:          []definition.Path{{Path: "/api", LocalIP: "127.0.0.1", LocalPort: 8080, LocalScheme: "http", Strip: true}},
		Visitors:       []string{},
		Domain:         "shop", PublicURL: "https://shop.relay.example", State: agent.TunnelRunning, Inspect: true,
		CreatedAt: fakeTime.In(time.FixedZone("there", 7200)),
	}}
	f.requests = []inspect.Detail{
		{
			Summary: inspect.Summary{
				ID: "r_1", Kind: "http", TunnelID: "t_1", TunnelName: "shop", Type: "https", Time: fakeTime,
				Visitor: "203.0.113.9:50122", State: "done", Method: "POST", Host: "shop.relay.example", Path: "/orders", Status: 201,
			},
			Request: &inspect.Message{
				Line: "POST /orders HTTP/1.1", Proto: "HTTP/1.1",
				Headers: []inspect.Header{{Name: "Authorization", Value: "", Redacted: true}},
				Body:    inspect.Body{Size: 2, Text: "{}"},
			},
			Response: &inspect.Message{Line: "HTTP/1.1 201 Created", Proto: "HTTP/1.1", Headers: []inspect.Header{}},
			Curl:     "curl …", URL: "https://shop.relay.example/orders",
		},
		{Summary: inspect.Summary{
			ID: "r_2", Kind: "flow", TunnelID: "t_2", TunnelName: "ssh", Type: "tcp", Time: fakeTime,
			Visitor: "203.0.113.9:50123", State: "open",
		}},
	}
	return f
}

func (f *fakeAgent) refusal() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refuse
}

func (f *fakeAgent) setRefusal(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

func (f *fakeAgent) Auth() agent.AuthStatus {
	at := fakeTime
	return agent.AuthStatus{
		Configured: true, Authenticated: true, ClientID: "nas", Relay: "relay.example:4433",
		TokenHint: "adit_…Zk3v9Q", ConfiguredAt: &at,
	}
}

func (f *fakeAgent) Configure(context.Context, string, string) (agent.AuthStatus, error) {
	return f.Auth(), f.refusal()
}

func (f *fakeAgent) Forget(context.Context) error { return f.refusal() }

func (f *fakeAgent) Status() agent.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := fakeTime
	st := agent.Status{
		Configured: true, Connected: true, State: agent.StateConnected, Relay: "relay.example:4433", Transport: "dtls",
		RTTMillis: 23.4, ConnectedSince: &since, EndpointCount: 1, Version: "v1.4.0", OS: "linux", Arch: "amd64",
		PID: 4711, StartedAt: fakeTime, Bytes: traffic.Bytes{In: 12, Out: 34},
	}
	if f.paused {
		st.Connected, st.State, st.Transport, st.ConnectedSince = false, agent.StatePaused, "", nil
	}
	return st
}

func (f *fakeAgent) Endpoints() []agent.Endpoint {
	return []agent.Endpoint{{
		ID: "e_1", TunnelID: "t_1", Name: "shop", Type: "https", Mode: "standard", PublicURL: "https://shop.relay.example",
		Local: "127.0.0.1:3000", State: agent.TunnelRunning, Since: fakeTime, Connections: traffic.Connections{Open: 1, Total: 2},
	}}
}

func (f *fakeAgent) setPaused(v bool) (agent.Status, error) {
	f.mu.Lock()
	f.paused = v
	f.mu.Unlock()
	return f.Status(), f.refusal()
}

func (f *fakeAgent) Pause(context.Context) (agent.Status, error)  { return f.setPaused(true) }
func (f *fakeAgent) Resume(context.Context) (agent.Status, error) { return f.setPaused(false) }
func (f *fakeAgent) Reconnect(context.Context) (agent.Status, error) {
	return f.Status(), f.refusal()
}

func (f *fakeAgent) Tunnels() []agent.Tunnel {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]agent.Tunnel(nil), f.tunnels...)
}

func (f *fakeAgent) Tunnel(id string) (agent.Tunnel, bool) {
	for _, t := range f.Tunnels() {
		if t.ID == id {
			return t, true
		}
	}
	return agent.Tunnel{}, false
}

func (f *fakeAgent) Create(_ context.Context, spec definition.Tunnel) (agent.Tunnel, error) {
	if err := f.refusal(); err != nil {
		return agent.Tunnel{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.specs = append(f.specs, spec)
	t := f.tunnels[0]
	t.ID = fmt.Sprintf("t_%d", len(f.tunnels)+1)
	t.LocalPort = spec.LocalPort
	f.tunnels = append(f.tunnels, t)
	return t, nil
}

func (f *fakeAgent) one(id string) (agent.Tunnel, error) {
	if err := f.refusal(); err != nil {
		return agent.Tunnel{}, err
	}
	t, ok := f.Tunnel(id)
	if !ok {
		return t, &refusal.Error{Code: refusal.CodeNotFound, Message: "there is no tunnel " + id}
	}
	return t, nil
}

func (f *fakeAgent) Change(_ context.Context, id string, p definition.Patch) (agent.Tunnel, error) {
	f.mu.Lock()
	f.patches = append(f.patches, p)
	f.mu.Unlock()
	return f.one(id)
}

func (f *fakeAgent) Policy(_ context.Context, id string) (agent.TunnelPolicy, error) {
	_, err := f.one(id)
	return agent.TunnelPolicy{Policy: json.RawMessage("{}"), Editable: true, Tag: `"none"`}, err
}

func (f *fakeAgent) SetPolicy(_ context.Context, id string, document json.RawMessage, expected http.Header) (agent.TunnelPolicy, error) {
	f.mu.Lock()
	f.expected = expected
	f.mu.Unlock()
	_, err := f.one(id)
	changed := fakeTime
	return agent.TunnelPolicy{Policy: document, Editable: true, SetBy: "shop", ChangedAt: &changed, Tag: `"1"`}, err
}

func (f *fakeAgent) StartTunnel(_ context.Context, id string) (agent.Tunnel, error) { return f.one(id) }

func (f *fakeAgent) StopTunnel(_ context.Context, id string) (agent.Tunnel, error) { return f.one(id) }

func (f *fakeAgent) DeleteTunnel(_ context.Context, id string) error {
	_, err := f.one(id)
	return err
}

func (f *fakeAgent) Visits() []visits.Visit {
	return []visits.Visit{{
		Visit: definition.Visit{Tunnel: "nas/ssh", Type: wire.TypeTCP, Listen: "127.0.0.1:2222"}, State: visits.StateListening,
		Connections: traffic.Connections{Open: 1, Total: 2},
	}}
}

func (f *fakeAgent) Invitations(context.Context) ([]agent.Invitation, error) {
	return []agent.Invitation{{Tunnel: "nas/ssh", Type: wire.TypeTCP}}, f.refusal()
}

func (f *fakeAgent) MayVisit(_ context.Context, tunnel string) (agent.Invitation, error) {
	return agent.Invitation{Tunnel: tunnel, Type: wire.TypeTCP}, f.refusal()
}

// VisitUDP says back each packet that it is told, until the connection ends.
func (f *fakeAgent) VisitUDP(_ context.Context, _ string, take func() (net.Conn, error)) error {
	if err := f.refusal(); err != nil {
		return err
	}
	conn, err := take()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
	return nil
}

// Visit greets, and says back what it is told after the visitor's end.
func (f *fakeAgent) Visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error)) error {
	if err := f.refusal(); err != nil {
		return err
	}
	if f.breaks != nil {
		return visits.New(slog.New(slog.DiscardHandler), breaking{f.breaks}).Visit(ctx, tunnel, take)
	}
	conn, err := take()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if f.visiting != nil {
		defer func() { f.visiting <- tunnel }()
	}
	io.WriteString(conn, "hello "+tunnel+"\n")
	told, err := io.ReadAll(conn)
	if err == nil {
		conn.Write(told)
		conn.CloseWrite()
	}
	return nil
}

// breaking is a visits.Dialer of one broken stream.
type breaking struct{ net.Conn }

func (b breaking) DialPrivate(context.Context, string) (link.Stream, error) {
	return broken(b), nil
}

func (b breaking) DialPrivateUDP(context.Context, string, func([][]byte)) (*visits.Flow, error) {
	return nil, errors.New("there are no packets")
}

// broken is a stream that is broken where its connection ends.
type broken struct{ net.Conn }

func (s broken) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if err != nil {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (s broken) CloseWrite() error { return nil }
func (s broken) Reset()            { s.Close() }
func (s broken) Quiet() bool       { return true }

func (f *fakeAgent) Hold(id string) (agent.Hold, error) {
	if _, err := f.one(id); err != nil {
		return agent.Hold{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := f.gone
	if gone == nil {
		gone = make(chan struct{})
		close(gone)
	}
	f.holding++
	return agent.Hold{Gone: gone, Release: func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.holding--
	}}, nil
}

func (f *fakeAgent) holds() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holding
}

func (f *fakeAgent) Requests(q inspect.Filter) []inspect.Summary {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters = append(f.filters, q)
	var out []inspect.Summary
	for _, d := range f.requests {
		out = append(out, d.Summary)
	}
	return out
}

func (f *fakeAgent) Request(id string, _ bool) (inspect.Detail, bool) {
	for _, d := range f.requests {
		if d.ID == id {
			return d, true
		}
	}
	return inspect.Detail{}, false
}

func (f *fakeAgent) Replay(_ context.Context, id string, edit inspect.Edit) (inspect.Detail, error) {
	if err := f.refusal(); err != nil {
		return inspect.Detail{}, err
	}
	f.mu.Lock()
	f.edits = append(f.edits, edit)
	f.mu.Unlock()
	d, ok := f.Request(id, false)
	if !ok {
		return d, &refusal.Error{Code: refusal.CodeNotFound, Message: "there is no request " + id}
	}
	d.ReplayOf = id
	return d, nil
}

func (f *fakeAgent) ClearRequests() {}

func (f *fakeAgent) WriteHAR(w io.Writer, _ inspect.Filter, _ bool) error {
	_, err := io.WriteString(w, f.har)
	return cmp.Or(err, f.harErr)
}

func (f *fakeAgent) ReadHAR(r io.Reader) (int, error) {
	b, err := io.ReadAll(r)
	if len(b) < 10 {
		return 0, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "it has no log"}
	}
	return 1, err
}

func (f *fakeAgent) Diagnose(context.Context) []diagnosis.Check {
	return []diagnosis.Check{{Name: "token", Status: "ok", Tried: "the stored token", Result: "it is there"}}
}

func (f *fakeAgent) MeasureSpeed(context.Context) (diagnosis.Speeds, error) {
	if f.refuse != nil {
		return diagnosis.Speeds{}, f.refuse
	}
	return diagnosis.Speeds{Items: []diagnosis.Speed{
		{Transport: "dtls", InUse: true, RTTMillis: 1.5, PerSecond: traffic.Bytes{In: 1, Out: 2}},
		{Transport: "tls", Error: "nothing answers"},
	}}, nil
}

// fakeFeed holds events 1 to n, and gives those after the asked for.
type fakeFeed struct {
	mu     sync.Mutex
	events []feed.Event
	more   chan struct{} // closed at each new event
}

func newFakeFeed() *fakeFeed { return &fakeFeed{more: make(chan struct{})} }

func (f *fakeFeed) publish(kind string, data any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, feed.Event{ID: uint64(len(f.events) + 1), Type: kind, Time: fakeTime, Data: data})
	close(f.more)
	f.more = make(chan struct{})
}

func (f *fakeFeed) begin(after *uint64) Feed {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := len(f.events)
	if after != nil {
		at = int(min(*after, uint64(len(f.events))))
	}
	return &fakeReader{feed: f, at: at}
}

type fakeReader struct {
	feed *fakeFeed
	at   int
}

func (r *fakeReader) Last() uint64 { return uint64(r.at) }

func (r *fakeReader) Next(ctx context.Context) (feed.Event, error) {
	for {
		r.feed.mu.Lock()
		if r.at < len(r.feed.events) {
			e := r.feed.events[r.at]
			r.at++
			r.feed.mu.Unlock()
			return e, nil
		}
		more := r.feed.more
		r.feed.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return feed.Event{}, ctx.Err()
		}
	}
}

// running is a served Server.
type running struct {
	*Server
	agent *fakeAgent
	feed  *fakeFeed
	addr  string
	url   string
	stop  func() // ends it and waits
}

// serve runs a server with a fake agent on a loopback port until the test ends.
func serve(tb testing.TB, change func(*Config)) *running {
	tb.Helper()
	r := &running{agent: newFakeAgent(), feed: newFakeFeed()}
	cfg := Config{Agent: r.agent, Events: r.feed.begin, Version: "v1.4.0"}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	r.Server, r.addr, r.url = s, ln.Addr().String(), "http://"+ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				tb.Errorf("Serve: got error %v, want nil", err)
			}
		case <-time.After(20 * time.Second):
			tb.Error("Serve did not end")
		}
	})
	tb.Cleanup(r.stop)
	return r
}

var plainClient = &http.Client{
	Timeout:       20 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

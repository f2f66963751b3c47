package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// endedLink is a session that has ended.
type endedLink struct{ link.Session }

func (endedLink) Transport() link.Transport { return link.TLS }
func (endedLink) RemoteAddr() net.Addr      { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711} }
func (endedLink) Err() error                { return net.ErrClosed }
func (endedLink) Close(string) error        { return nil }
func (endedLink) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// stopLog is a log that blocks whoever writes a message until it is released.
type stopLog struct {
	slog.Handler
	message    string
	held, free chan struct{}
}

func (l stopLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == l.message {
		close(l.held)
		<-l.free
	}
	return nil
}

func (stopLog) Enabled(context.Context, slog.Level) bool { return true }

func TestHelloThatIsServedWhileItsSessionEndsLeavesNoSession(t *testing.T) {
	// Holds the hello after it was read: the client has moved too much already.
	log := stopLog{slog.DiscardHandler, "client's traffic of this month", make(chan struct{}), make(chan struct{})}
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), Log: slog.New(log)})
	token := r.scoped(t, "laptop", scope.Scope{Monthly: 1})
	c, _ := r.store.Clients.Get("laptop")
	if _, err := r.store.Usages.Add(t.Context(), c.ID, store.MonthOf(time.Now()), store.Tally{Run: "before", In: 2}); err != nil {
		t.Fatal(err)
	}
	s := &session{
		relay: r.Relay, link: endedLink{}, id: newID(), since: time.Now().UTC(), tunnels: make(map[string]*tunnel),
		control: make(chan *wire.Event, 1), named: func() {},
	}
	hello, err := json.Marshal(wire.Hello{Protocol: wire.Protocol, Secret: token.Secret[:], Instance: "one"})
	if err != nil {
		t.Fatal(err)
	}
	said, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)
		q := httptest.NewRequest(http.MethodPost, wire.PathHello, bytes.NewReader(hello))
		controlPlane.ServeHTTP(httptest.NewRecorder(), q.WithContext(s.inContext(q.Context())))
	}()
	select {
	case <-log.held:
	case <-time.After(patience):
		t.Fatal("the hello was not read")
	}
	go func() { defer close(left); r.leave(s) }()
	eventually(t, "the session has ended", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tunnels == nil
	})
	close(log.free)
	<-said
	<-left
	if n := len(r.roster.All()); n != 0 {
		t.Errorf("got %d sessions after the only one has ended, want 0", n)
	}
}

func TestRelaysOwnNameIsNobodysHoweverItIsWritten(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.PublicHost = "Agents.Relay.Test."
	r := startRelay(t, cfg)
	token := r.client(t, "laptop")
	token.Relay = r.Addrs().Tunnel
	a := connect(t, token, "one")
	_, err := a.claim("web", wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: "agents"}, "")
	problem(t, err, wire.CodeForbidden)
}

// draining is an answer during whose writing another stream takes the waiting events.
type draining struct {
	http.ResponseWriter
	access  chan *wire.Event
	written atomic.Int32
}

func (d *draining) Flush() {}

func (d *draining) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(wire.EventAccess)) && d.written.Add(1) == 2 {
		for len(d.access) > 0 {
			<-d.access
		}
	}
	return len(b), nil
}

func TestEventsThatAnotherStreamTakesAreNotWaitedFor(t *testing.T) {
	s := &session{control: make(chan *wire.Event, 1), tunnels: make(map[string]*tunnel)}
	for range 5 {
		s.accessEvents() <- &wire.Event{Type: wire.EventAccess}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &draining{ResponseWriter: httptest.NewRecorder(), access: s.accessEvents()}
	done := make(chan error, 1)
	go func() {
		done <- s.serveEvents(w, httptest.NewRequest(http.MethodGet, wire.PathEvents, nil).WithContext(ctx))
	}()
	eventually(t, "two events are written", func() bool { return w.written.Load() >= 2 })
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the stream of events did not end with its request")
	}
}

package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/splice"
	"adit/tunnel/agent/visits"
	"adit/tunnel/wire"
)

// greets takes a visit, speaks first, as ssh does, and says back what it is told after
// the visitor's end.
func greets(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodGet {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+wire.UpgradeVisit+"\r\n\r\nhello "+q.URL.Path+"\n")
	told, err := io.ReadAll(buf)
	if err == nil {
		conn.Write(told)
	}
}

func (r *fakeRelay) visited(by http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onVisit = by
}

// saysTo says something to a connection, ends its direction, and returns what comes.
func saysTo(t *testing.T, addr, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil { // it may be reset before the dialler has it
		return "error: " + err.Error()
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, err = io.WriteString(conn, text) // a reset is told once: to who writes, or to who reads
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		return "error: " + err.Error()
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(got)
}

func visitIs(t *testing.T, a *Agent, ok func(visits.Visit) bool) visits.Visit {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		list := a.Visits()
		if len(list) == 1 && ok(list[0]) {
			return list[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("the visits are %+v", list)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func listening(v visits.Visit) bool { return v.State == visits.StateListening }

func TestDeclaredVisitsLeadToATunnel(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePrivate)
	r.visited(greets)
	a, _ := configured(t, r, Config{})
	addr := freeport.Loopback(t)
	if err := a.DeclareVisits([]definition.Visit{{Tunnel: "adit://NAS/ssh", Listen: addr}}); err != nil {
		t.Fatal(err)
	}
	visitIs(t, a, listening)
	if got := saysTo(t, addr, "what was said"); got != "hello /v1/visit/nas/ssh\nwhat was said" {
		t.Errorf("the tunnel said %q", got)
	}
	v := visitIs(t, a, func(v visits.Visit) bool { return v.Connections.Open == 0 && v.Connections.Total == 1 })
	if v.Tunnel != "nas/ssh" || v.Bytes.In != 13 || v.Bytes.Out != 37 || v.Error != "" {
		t.Errorf("it is shown as %+v", v)
	}
	if err := a.DeclareVisits([]definition.Visit{{Tunnel: "nas/rdp", Listen: addr}}); err != nil {
		t.Fatal(err)
	}
	visitIs(t, a, func(v visits.Visit) bool { return v.Tunnel == "nas/rdp" && listening(v) })
	if got := saysTo(t, addr, ""); got != "hello /v1/visit/nas/rdp\n" {
		t.Errorf("another tunnel at the same address said %q", got)
	}
	if err := a.DeclareVisits(nil); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("what is no longer declared listens on")
		}
	}
}

func TestWhoIsNotLedOnLearnsIt(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePrivate)
	a, _ := configured(t, r, Config{})
	addr := freeport.Loopback(t)
	if err := a.DeclareVisits([]definition.Visit{{Tunnel: "nas/ssh", Listen: addr}}); err != nil {
		t.Fatal(err)
	}
	visitIs(t, a, listening)
	if got := saysTo(t, addr, "x"); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a connection that is not let in ends with %q, want an error", got)
	}
	visitIs(t, a, func(v visits.Visit) bool { return strings.Contains(v.Error, "nobody is let in") && listening(v) })
	r.visited(greets)
	saysTo(t, addr, "")
	visitIs(t, a, func(v visits.Visit) bool { return v.Error == "" })
}

func TestWhyAVisitIsRefused(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	take := func() (splice.HalfCloser, error) {
		t.Error("a visit that was refused takes the connection")
		return nil, errors.New("not taken")
	}
	refused := func(tunnel, code, says string) {
		t.Helper()
		_, asked := a.MayVisit(t.Context(), tunnel)
		for how, err := range map[string]error{"visit": a.Visit(t.Context(), tunnel, take), "ask": asked} {
			var no *refusal.Error
			if !errors.As(err, &no) || no.Code != code || !strings.Contains(no.Message, says) {
				t.Errorf("%s %s: %v, want %s with %q", how, tunnel, err, code, says)
			}
		}
	}
	refused("nas", refusal.CodeInvalidParameter, "CLIENT/NAME")
	refused("nas/ssh", refusal.CodeRelayRejected, "too old for private tunnels")
	r.does(wire.FeaturePrivate)
	if _, err := a.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused("nas/ssh", refusal.CodeRelayRejected, "nobody is let in")
	var no *refusal.Error
	if err := a.VisitUDP(t.Context(), "nas/game", nil); !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected || !strings.Contains(no.Message, "any type but tcp") {
		t.Errorf("visit of a udp tunnel at an older relay: %v", err)
	}
	if _, err := a.Create(t.Context(), definition.Tunnel{Type: "udp", Mode: "private", LocalPort: 9}); !errors.As(err, &no) || no.Field != "type" || !strings.Contains(no.Message, "any type but tcp") {
		t.Errorf("a udp tunnel at an older relay: %v", err)
	}
	r.visited(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	refused("nas/ssh", refusal.CodeRelayUnreachable, "418")
	r.visited(func(w http.ResponseWriter, q *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nX: "+strings.Repeat("x", 2*4<<10)+"\r\n\r\n")
		if q.Method == http.MethodGet { // which is no answer to that either
			return
		}
	})
	refused("nas/ssh", refusal.CodeRelayUnreachable, "")
	r.visited(func(w http.ResponseWriter, q *http.Request) { // of a tunnel whose service is down
		if q.Method == http.MethodGet {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		conn.(interface{ Reset() }).Reset()
		conn.Close()
	})
	if err := a.Visit(t.Context(), "nas/ssh", take); !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected || !strings.Contains(no.Message, "whether its local service is running") {
		t.Errorf("visit of one whose service is down: %v", err)
	}
	r.visited(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusBadRequest, wire.Problem{Code: wire.CodeInvalid, Field: "type", Message: "it is of type udp"})
	})
	if err := a.Visit(t.Context(), "nas/game", take); !errors.As(err, &no) || no.Field != "" || !strings.Contains(no.Message, `nas/game is of type udp; declare the visit with type = "udp"`) {
		t.Errorf("visit of a udp tunnel as of tcp: %v", err)
	}
	if _, err := a.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused("nas/ssh", refusal.CodeRelayUnreachable, "paused")
}

func TestWhatMayBeVisited(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePrivate)
	a, _ := configured(t, r, Config{})
	var no *refusal.Error
	if list, err := a.Invitations(t.Context()); !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected || !strings.Contains(no.Message, "too old to list") {
		t.Errorf("an older relay told of %v, %v", list, err)
	}
	r.does(wire.FeatureInvitations)
	if _, err := a.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := a.Invitations(t.Context())
	if want := []Invitation{{"nas/ssh", wire.TypeTCP}, {"studio/files", wire.TypeUDP}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("it is told of %v, %v; want %v", list, err, want)
	}
}

// TestAVisitEndsWithItsCaller: it must not be left to the tunnel's end.
func TestAVisitEndsWithItsCaller(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePrivate)
	gone := make(chan struct{})
	r.visited(func(w http.ResponseWriter, q *http.Request) {
		defer close(gone)
		greets(w, q)
	})
	a, _ := configured(t, r, Config{})
	near, far := pipeTCP(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Visit(ctx, "nas/ssh", func() (splice.HalfCloser, error) { return near, nil }) }()
	if _, err := io.ReadFull(far, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the visit ended with %v", err)
	}
	<-gone
	if _, err := io.ReadAll(far); err == nil {
		t.Error("a connection that was cut looks as if it had ended")
	}
}

// pipeTCP is a connection's two ends.
func pipeTCP(t *testing.T) (one, other *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled.(*net.TCPConn), accepted.(*net.TCPConn)
}

func TestPrivateTunnelsAreClaimedAsTheyAreMeant(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePrivate)
	a, _ := configured(t, r, Config{})
	made := mustCreate(t, a, definition.Tunnel{LocalPort: 22, Mode: "private", Domain: " SSH", Visitors: []string{"Laptop ", "*"}})
	if made.Type != "tcp" || made.PublicURL != "adit://test/ssh" || !slices.Equal(made.Visitors, []string{"laptop", "*"}) {
		t.Errorf("made %+v", made)
	}
	r.mu.Lock()
	if got := r.claims[made.ID]; got.Mode != wire.ModePrivate || got.Domain != "ssh" || !slices.Equal(got.Visitors, []string{"laptop", "*"}) {
		t.Errorf("claimed %+v", got)
	}
	r.mu.Unlock()
	for field, want := range map[string]definition.Tunnel{
		"type":        {LocalPort: 22, Mode: "private", Type: "https"},
		"remote_port": {LocalPort: 22, Mode: "private", RemotePort: 22},
		"domain":      {LocalPort: 22, Mode: "private", Domain: "ssh.example.com"},
		"visitors":    {LocalPort: 22, Type: "tcp", Visitors: []string{"laptop"}},
	} {
		var no *refusal.Error
		if _, err := a.Create(t.Context(), want); !errors.As(err, &no) || no.Field != field {
			t.Errorf("%+v: %v, want a fault of %s", want, err, field)
		}
	}

	// What only the one mode has goes when the other comes.
	public := "standard"
	is, err := a.Change(t.Context(), made.ID, definition.Patch{Mode: &public})
	if err != nil || is.Domain != "" || len(is.Visitors) > 0 || is.RemotePort == 0 || !strings.HasPrefix(is.PublicURL, "tcp://") {
		t.Errorf("made public: %+v, %v", is, err)
	}
	private := "private"
	is, err = a.Change(t.Context(), made.ID, definition.Patch{Mode: &private})
	if err != nil || is.RemotePort != 0 || !strings.HasPrefix(is.PublicURL, "adit://test/random") {
		t.Errorf("made private again: %+v, %v", is, err)
	}
}

// TestARelayThatKnowsNoPrivateTunnelsIsNotAsked: it would say that there is no such mode.
func TestARelayThatKnowsNoPrivateTunnelsIsNotAsked(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	var no *refusal.Error
	_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 22, Mode: "private"})
	if !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected || no.Field != "mode" || !strings.Contains(no.Message, "too old for private tunnels") {
		t.Errorf("got %v", err)
	}
}

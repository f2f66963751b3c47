package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

func TestTunnelRunsAndIsRestored(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 8000})
	if tun.Type != "https" || tun.Mode != "standard" || tun.LocalIP != "127.0.0.1" || tun.LocalScheme != "http" ||
		!tun.Inspect || tun.State != TunnelRunning || tun.PublicURL == "" || tun.Name != "https-8000" {
		t.Errorf("got %+v, want the defaults, running", tun)
	}
	second := mustCreate(t, a, definition.Tunnel{LocalPort: 8000, Type: "tcp", Name: "db"})
	passing := mustCreate(t, a, definition.Tunnel{LocalPort: 8001, Ephemeral: true})
	if n := a.Status().EndpointCount; n != 3 || len(a.Endpoints()) != 3 {
		t.Errorf("got %d and %d endpoints, want 3", n, len(a.Endpoints()))
	}
	stop()
	b, _ := startAgent(t, Config{StateDir: dir})
	for _, want := range []Tunnel{tun, second} {
		if got := wantTunnel(t, b, want.ID, TunnelRunning); !reflect.DeepEqual(got, want) {
			t.Errorf("after a restart: got %+v, want %+v", got, want)
		}
	}
	if _, ok := b.Tunnel(passing.ID); ok {
		t.Error("the ephemeral tunnel came back")
	}
	eventually(t, "what the ephemeral tunnel had is given back", func() bool {
		_, ok := r.claim(passing.ID)
		return !ok
	})
}

func TestRelayThatForgotIsAskedForTheSame(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	port := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Type: "tcp"})
	r.kill()
	r.set(func() { clear(r.claims); clear(r.numbers); r.next = 100 })
	r.start()
	wantState(t, a, StateConnected)
	if got := wantTunnel(t, a, tun.ID, TunnelRunning); got.PublicURL != tun.PublicURL {
		t.Errorf("got %s, want %s", got.PublicURL, tun.PublicURL)
	}
	if got := wantTunnel(t, a, port.ID, TunnelRunning); got.PublicURL != port.PublicURL {
		t.Errorf("got %s, want %s", got.PublicURL, port.PublicURL)
	}
}

func TestNameThatWasGivenAndIsTakenIsReplaced(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	given := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	wished := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "mine"})
	r.set(func() {
		r.onClaim = func(_ string, c wire.Claim) *wire.Problem {
			if c.Domain != "" {
				return &wire.Problem{Code: wire.CodeTaken, Message: "it is another's", Field: "domain"}
			}
			return nil
		}
		r.next = 50
	})
	r.drop()
	wantState(t, a, StateConnected)
	if got := wantTunnel(t, a, wished.ID, TunnelFailed); !strings.Contains(got.Error, "another's") {
		t.Errorf("got %+v, want the relay's reason", got)
	}
	if got := wantTunnel(t, a, given.ID, TunnelRunning); got.PublicURL == given.PublicURL {
		t.Errorf("got %+v, want another name", got)
	}
}

func TestOneChangeAtATime(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	hold := make(chan struct{})
	r.set(func() { r.hold = hold })
	done := make(chan error, 1)
	go func() {
		_, err := a.Create(context.Background(), definition.Tunnel{LocalPort: 81})
		done <- err
	}()
	eventually(t, "the change runs", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.held > 0
	})
	begin := time.Now()
	_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 82})
	wantCode(t, err, refusal.CodeControlBusy, "")
	_, err = a.Change(t.Context(), tun.ID, definition.Patch{LocalPort: new(90)})
	wantCode(t, err, refusal.CodeControlBusy, "")
	_, err = a.StartTunnel(t.Context(), tun.ID)
	wantCode(t, err, refusal.CodeControlBusy, "")
	_, err = a.StopTunnel(t.Context(), tun.ID)
	wantCode(t, err, refusal.CodeControlBusy, "")
	wantCode(t, a.DeleteTunnel(t.Context(), tun.ID), refusal.CodeControlBusy, "")
	_, err = a.Configure(t.Context(), r.token().Reveal(), "")
	wantCode(t, err, refusal.CodeControlBusy, "")
	wantCode(t, a.Forget(t.Context()), refusal.CodeControlBusy, "")
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("refusals took %s, want them at once", d)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Errorf("the change that ran: %v", err)
	}
	if _, err := a.StopTunnel(t.Context(), tun.ID); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestLifeCycle(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop"})
	for range 2 {
		got, err := a.StopTunnel(t.Context(), tun.ID)
		if err != nil || got.State != TunnelStopped {
			t.Fatalf("stop: got %+v, %v", got, err)
		}
	}
	r.set(func() {
		if _, ok := r.claims[tun.ID]; !ok || !r.kept[tun.ID] {
			t.Error("stop: the relay was not told to keep the name")
		}
	})
	if len(a.Endpoints()) != 0 {
		t.Error("a stopped tunnel has an endpoint")
	}
	for range 2 {
		got, err := a.StartTunnel(t.Context(), tun.ID)
		if err != nil || got.State != TunnelRunning || got.PublicURL != tun.PublicURL {
			t.Fatalf("start: got %+v, %v", got, err)
		}
	}
	if err := a.DeleteTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.claim(tun.ID); ok {
		t.Error("delete: the public address was not given back")
	}
	wantCode(t, a.DeleteTunnel(t.Context(), tun.ID), refusal.CodeNotFound, "")
	_, err := a.StartTunnel(t.Context(), "tun_nowhere")
	wantCode(t, err, refusal.CodeNotFound, "")
	_, err = a.StopTunnel(t.Context(), "tun_nowhere")
	wantCode(t, err, refusal.CodeNotFound, "")
	_, err = a.Change(t.Context(), "tun_nowhere", definition.Patch{})
	wantCode(t, err, refusal.CodeNotFound, "")
}

func TestDeletedWhileAwayIsGivenBackLater(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	r.kill()
	wantState(t, a, StateReconnecting)
	if err := a.DeleteTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	stop()
	r.start()
	b, _ := startAgent(t, Config{StateDir: dir})
	wantState(t, b, StateConnected)
	eventually(t, "claim given back", func() bool { _, ok := r.claim(tun.ID); return !ok })
}

func TestChangeTakesEffectOrNothingDoes(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop"})
	got, err := a.Change(t.Context(), tun.ID, definition.Patch{Domain: new("store"), LocalPort: new(81), Name: new("my shop")})
	if err != nil || got.PublicURL != "https://store.relay.test" || got.LocalPort != 81 || got.Name != "my shop" || got.State != TunnelRunning {
		t.Fatalf("got %+v, %v", got, err)
	}
	r.set(func() {
		r.onClaim = func(_ string, c wire.Claim) *wire.Problem {
			if c.Domain == "bank" {
				return &wire.Problem{Code: wire.CodeForbidden, Message: "not yours", Field: "domain"}
			}
			return nil
		}
	})
	_, err = a.Change(t.Context(), tun.ID, definition.Patch{Domain: new("bank"), LocalPort: new(82)})
	wantCode(t, err, refusal.CodeRelayRejected, "domain")
	after, _ := a.Tunnel(tun.ID)
	if !reflect.DeepEqual(after, got) {
		t.Errorf("after the refusal: got %+v, want %+v", after, got)
	}
	_, err = a.Change(t.Context(), tun.ID, definition.Patch{LocalPort: new(0)})
	wantCode(t, err, refusal.CodeInvalidParameter, "local_port")
	_, err = a.Change(t.Context(), tun.ID, definition.Patch{Type: new("tcp"), Domain: new("shop")})
	wantCode(t, err, refusal.CodeInvalidParameter, "domain")
	got, err = a.Change(t.Context(), tun.ID, definition.Patch{Type: new("tcp")}) // the domain goes
	if err != nil || got.Type != "tcp" || got.LocalScheme != "" || got.RemotePort == 0 {
		t.Errorf("type: got %+v, %v", got, err)
	}
}

func TestFailedSaveLeavesTunnelsAsTheyWere(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	write := a.state.Write
	// Fails at the nth write from now on.
	failAt := func(n int) {
		setWrite(a, func(path string, data []byte, perm fs.FileMode) error {
			if n--; n < 0 {
				return errors.New("disk full")
			}
			return write(path, data, perm)
		})
	}
	for n := range 2 {
		failAt(n)
		if _, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 81}); err == nil {
			t.Errorf("create, write %d: got no error", n)
		}
	}
	failAt(0)
	if _, err := a.Change(t.Context(), tun.ID, definition.Patch{LocalPort: new(90)}); err == nil {
		t.Error("change: got no error")
	}
	if _, err := a.StopTunnel(t.Context(), tun.ID); err == nil {
		t.Error("stop: got no error")
	}
	if err := a.DeleteTunnel(t.Context(), tun.ID); err == nil {
		t.Error("delete: got no error")
	}
	setWrite(a, write)
	got := a.Tunnels()
	if len(got) != 1 || !reflect.DeepEqual(got[0], tun) {
		t.Errorf("got %+v, want %+v alone", got, tun)
	}
	r.set(func() {
		if len(r.claims) != 1 {
			t.Errorf("the relay holds %v, want the one tunnel's claim", r.claims)
		}
	})
}

func TestClaimLostFailsTheTunnel(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	r.session().events <- wire.Event{Type: wire.EventClaimLost, Key: tun.ID, Reason: "the domain was withdrawn"}
	if got := wantTunnel(t, a, tun.ID, TunnelFailed); !strings.Contains(got.Error, "withdrawn") {
		t.Errorf("got %+v, want the reason", got)
	}
	if got, err := a.StartTunnel(t.Context(), tun.ID); err != nil || got.State != TunnelRunning || got.Error != "" {
		t.Errorf("start: got %+v, %v", got, err)
	}
}

// TestWhatTheOperatorGivesBackIsThereAgain without anybody at the agent's machine.
func TestWhatTheOperatorGivesBackIsThereAgain(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	r.session().events <- wire.Event{Type: wire.EventClaimLost, Key: tun.ID, Reason: "the domain was withdrawn"}
	wantTunnel(t, a, tun.ID, TunnelFailed)
	r.session().events <- wire.Event{Type: wire.EventScope}
	wantTunnel(t, a, tun.ID, TunnelRunning)
}

func TestFeedTellsEveryChangeInOrder(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := startAgent(t, Config{})
	sub := a.Subscribe(nil)
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	if err := a.DeleteTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var seen []string
	last := sub.Last()
	for !strings.Contains(strings.Join(seen, " "), "tunnel:deleted") {
		e, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("after %v: %v", seen, err)
		}
		if e.ID != last+1 {
			t.Errorf("id %d follows %d", e.ID, last)
		}
		last = e.ID
		switch d := e.Data.(type) {
		case Status:
			seen = append(seen, "status:"+d.State)
		case TunnelEvent:
			seen = append(seen, "tunnel:"+d.Action)
		case EndpointEvent:
			seen = append(seen, "endpoint:"+d.Action)
		}
	}
	all := " " + strings.Join(seen, " ")
	for _, want := range []string{" status:connected", " tunnel:created", " endpoint:up", " endpoint:down", " tunnel:deleted"} {
		i := strings.Index(all, want)
		if i < 0 {
			t.Fatalf("got %v, want %s in this order", seen, want)
		}
		all = all[i:]
	}
}

func TestManyTunnelsAreClaimedAgain(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	const many = 300
	for i := range many {
		mustCreate(t, a, definition.Tunnel{LocalPort: i + 1, Ephemeral: true})
	}
	r.drop()
	eventually(t, "all run again", func() bool { return a.Status().EndpointCount == many })
}

// TestVisitorsOfAChangeThatWasRefusedAreCut: they were led to what the change would
// have led to, and the relay keeps their streams for the requests to come.
func TestVisitorsOfAChangeThatWasRefusedAreCut(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePaths)
	a, _ := configured(t, r, Config{})
	waits := func() int { return service(t, func(c net.Conn) { io.Copy(c, c) }) }
	before := definition.Tunnel{Type: "http", LocalPort: waits(), Paths: []definition.Path{{Path: "/api", LocalPort: waits()}}}
	tun := mustCreate(t, a, before)
	visits := func() map[string]link.Stream {
		all := map[string]link.Stream{}
		for _, path := range []string{"", "/api"} {
			s, err := r.visitPath(tun.ID, wire.StreamRaw, path)
			if err != nil {
				t.Errorf("%q: %v", path, err)
				continue
			}
			t.Cleanup(s.Reset)
			all[path] = s
		}
		return all
	}
	echo := func(s link.Stream) error {
		if _, err := s.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(s, make([]byte, 1))
		return err
	}
	early, late := visits(), map[string]link.Stream{}
	for path, s := range early { // they are under way
		if err := echo(s); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	r.set(func() {
		r.onClaim = func(string, wire.Claim) *wire.Problem {
			late = visits()
			for path, s := range late {
				if err := echo(s); err != nil {
					t.Errorf("%q while the relay is asked: %v", path, err)
				}
			}
			return &wire.Problem{Code: wire.CodeTaken, Message: "taken", Field: "domain"}
		}
	})
	_, err := a.Change(t.Context(), tun.ID, definition.Patch{Domain: new("bank"), LocalPort: new(waits()), Paths: &[]definition.Path{{Path: "/api", LocalPort: waits()}}})
	wantCode(t, err, refusal.CodeRelayRejected, "domain")
	if len(early) != 2 || len(late) != 2 {
		t.FailNow()
	}
	for path := range late {
		if err := echo(early[path]); err != nil {
			t.Errorf("%q from before: %v", path, err)
		}
		if echo(late[path]) == nil {
			t.Errorf("%q still leads to where the refused change would have", path)
		}
	}
}

package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

func TestTunnelStoppedWhileItsOriginIsDialledKeepsNoVisitor(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{OriginTimeout: patience})
	asked, goOn := make(chan struct{}), make(chan struct{})
	var slow atomic.Bool
	a.origins.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		if slow.Load() {
			close(asked)
			<-goOn
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo), LocalIP: "service.test"})
	slow.Store(true)
	got := make(chan error, 1)
	go func() {
		s, err := r.visit(tun.ID, wire.StreamRaw)
		if err == nil {
			defer s.Reset()
			s.Write([]byte("hello"))
			_, err = io.ReadFull(s, make([]byte, 5))
		}
		got <- err
	}()
	<-asked
	slow.Store(false)
	if _, err := a.StopTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-got; err == nil {
		t.Error("the visitor was served by a tunnel that had been stopped")
	}
}

func TestChangeThatIsNotAnsweredIsUndoneAtTheRelay(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop"})
	taken, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	var once sync.Once
	r.set(func() {
		r.onClaim = func(key string, c wire.Claim) *wire.Problem {
			if c.Domain == "shop" {
				return nil
			}
			r.set(func() { r.claims[key] = c })
			once.Do(func() { close(taken) })
			<-end
			return &wire.Problem{Code: wire.CodeUnavailable, Message: "too late"}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-taken; cancel() }()
	if _, err := a.Change(ctx, tun.ID, definition.Patch{Domain: new("store")}); err == nil {
		t.Fatal("got no error from a change that the relay did not answer")
	}
	if got, _ := a.Tunnel(tun.ID); got.Domain != "shop" {
		t.Errorf("got domain %q, want it as it was", got.Domain)
	}
	eventually(t, "the relay has the tunnel as it was", func() bool { c, _ := r.claim(tun.ID); return c.Domain == "shop" })
}

func TestClaimThatCouldNotBeGivenBackIsGivenBackLater(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	r.set(func() { r.unable = 2 })
	if err := a.DeleteTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "claim given back on the same session", func() bool { _, ok := r.claim(tun.ID); return !ok })
	eventually(t, "nothing owed", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.releases) == 0
	})
}

func TestForgottenTokenIsNotWrittenAgain(t *testing.T) {
	a, err := New(Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	token := wire.Token{Relay: "127.0.0.1:4433", Fingerprint: [32]byte{1}, Secret: [wire.SecretSize]byte{2}}
	for range 200 {
		a.mu.Lock()
		a.login.auth.Token, a.login.token, a.login.accepted = token.Reveal(), token, true
		a.mu.Unlock()
		forgotten, again := false, false // guarded by a.saving
		setWrite(a, func(_ string, data []byte, _ fs.FileMode) error {
			has := strings.Contains(string(data), token.Reveal())
			again = again || forgotten && has
			forgotten = forgotten || !has
			return nil
		})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _ = a.saveAuth() })
		}
		if err := a.Forget(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if again {
			t.Fatal("the token was written once more after it had been forgotten")
		}
	}
}

func TestTunnelThatMayNotBeAnyMoreIsNotStarted(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 4711})
	stop()
	b, _ := startAgent(t, Config{StateDir: dir, Refuse: func(_ netip.Addr, port int) error {
		if port == 4711 {
			return errors.New("adit listens there itself")
		}
		return nil
	}})
	wantState(t, b, StateConnected)
	wantTunnel(t, b, tun.ID, TunnelFailed)
	_, err := b.StartTunnel(t.Context(), tun.ID)
	wantCode(t, err, refusal.CodeInvalidParameter, "local_ip")
	if _, err := b.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.Tunnel(tun.ID); got.State != TunnelFailed || !strings.Contains(got.Error, "adit listens there itself") {
		t.Errorf("got %s %q after another token, want it failed for the same reason", got.State, got.Error)
	}
	if _, err := b.Change(t.Context(), tun.ID, definition.Patch{LocalPort: new(4712)}); err != nil {
		t.Fatal(err)
	}
	wantTunnel(t, b, tun.ID, TunnelRunning)
}

// TestAgentAnswersWhileItAsksWhetherATunnelMayStart has the machine take its time
// to say which addresses are its own.
func TestAgentAnswersWhileItAsksWhetherATunnelMayStart(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 4711})
	stop()
	var starting atomic.Bool
	asked, goOn := make(chan struct{}), make(chan struct{})
	b, _ := startAgent(t, Config{StateDir: dir, Refuse: func(netip.Addr, int) error {
		if !starting.Load() {
			return errors.New("adit listens there itself")
		}
		close(asked)
		<-goOn
		return nil
	}})
	wantState(t, b, StateConnected)
	wantTunnel(t, b, tun.ID, TunnelFailed)
	starting.Store(true)
	started := make(chan error, 1)
	go func() {
		_, err := b.StartTunnel(t.Context(), tun.ID)
		started <- err
	}()
	<-asked
	answered := make(chan Status, 1)
	go func() { answered <- b.Status() }()
	select {
	case <-answered:
	case <-time.After(patience / 6):
		t.Error("the agent answers nothing meanwhile")
	}
	if _, err := b.StopTunnel(t.Context(), tun.ID); err == nil {
		t.Error("another request ran meanwhile")
	} else {
		wantCode(t, err, refusal.CodeControlBusy, "")
	}
	close(goOn)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	wantTunnel(t, b, tun.ID, TunnelRunning)
}

func TestStopThatTheRelayCouldNotTakeIsToldLater(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	r.set(func() { r.unable = 3 })
	got, err := a.StopTunnel(t.Context(), tun.ID)
	if err != nil || got.State != TunnelStopped {
		t.Fatalf("got %q, %v", got.State, err)
	}
	eventually(t, "endpoint taken down on the same session", func() bool {
		down := false
		r.set(func() { down = r.kept[tun.ID] })
		return down
	})
	eventually(t, "nothing owed", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.cur.owed) == 0
	})
	if _, ok := r.claim(tun.ID); !ok {
		t.Error("the public address of a stopped tunnel was given back")
	}
}

// TestStopThatIsOwedDoesNotEndATunnelThatRunsAgain: who stops and starts while
// the relay is slow has a tunnel that runs.
func TestStopThatIsOwedDoesNotEndATunnelThatRunsAgain(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	r.set(func() { r.unable = 2 })
	if _, err := a.StopTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.StartTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	l := a.cur
	a.mu.Unlock()
	l.look()
	eventually(t, "nothing owed", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(l.owed) == 0
	})
	wantTunnel(t, a, tun.ID, TunnelRunning)
	down := false
	r.set(func() { down = r.kept[tun.ID] })
	if down {
		t.Error("the relay was told to take down a tunnel that runs")
	}
}

func TestTunnelStoppedWhileItIsClaimedServesNobody(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo)})
	stop()
	asked, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.set(func() {
		r.onClaim = func(string, wire.Claim) *wire.Problem {
			once.Do(func() { close(asked) })
			<-goOn
			return nil
		}
	})
	b, _ := startAgent(t, Config{StateDir: dir})
	<-asked
	stopped := make(chan error, 1)
	go func() {
		_, err := b.StopTunnel(t.Context(), tun.ID)
		stopped <- err
	}()
	wantTunnel(t, b, tun.ID, TunnelStopped)
	close(goOn)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	eventually(t, "endpoint taken down at the relay", func() bool {
		down := false
		r.set(func() { down = r.kept[tun.ID] })
		return down
	})
	if s, err := r.visit(tun.ID, wire.StreamRaw); err == nil {
		s.Reset()
		t.Error("a visitor was served by a tunnel that had been stopped")
	}
}

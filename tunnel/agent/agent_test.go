package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"adit/internal/lockfile"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/diagnosis"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

func TestConfigureIsUsedAtOnceAndKept(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := startAgent(t, Config{StateDir: dir, Version: "1.2.3"})
	if got := a.Status(); got.State != StateUnconfigured || got.Configured || got.Connected || got.ClientName != "" {
		t.Errorf("before: got %+v", got)
	}
	auth, err := a.Configure(t.Context(), " "+r.token().Reveal()+"\n", "")
	if err != nil {
		t.Fatal(err)
	}
	if !auth.Configured || !auth.Authenticated || auth.ClientID != "cli_1" || auth.Relay != r.addr || auth.TokenHint != r.token().Hint() || auth.ConfiguredAt == nil {
		t.Errorf("got %+v", auth)
	}
	s := a.Status()
	if s.State != StateConnected || !s.Connected || s.Transport != "tls" || s.Relay != r.addr || s.ClientName != "test" || s.ConnectedSince == nil || s.LastError != "" {
		t.Errorf("after: got %+v", s)
	}
	stop()
	if runtime.GOOS != "windows" {
		info, err := os.Stat(filepath.Join(dir, authFile))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("auth.json: got permissions %o, want 600", got)
		}
	}
	b, _ := startAgent(t, Config{StateDir: dir})
	wantState(t, b, StateConnected)
	r.set(func() {
		if r.hellos[0].Instance == "" || r.hellos[0].Instance != r.hellos[len(r.hellos)-1].Instance {
			t.Errorf("instances: got %q and %q, want one that lasts", r.hellos[0].Instance, r.hellos[len(r.hellos)-1].Instance)
		}
		if r.hellos[0].Version != "1.2.3" {
			t.Errorf("got version %q", r.hellos[0].Version)
		}
	})
}

func TestBadTokenChangesNothing(t *testing.T) {
	r, other := newFakeRelay(t), newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	before, err := os.ReadFile(filepath.Join(a.cfg.StateDir, authFile))
	if err != nil {
		t.Fatal(err)
	}
	unknown, untrusted, wrongClient := r.token(), r.token(), other.token()
	unknown.Secret[0]++
	untrusted.Fingerprint[0]++
	for _, test := range []struct {
		name, token, client, code, field string
	}{
		{"malformed", "adit_nonsense", "", refusal.CodeInvalidToken, "auth_token"},
		{"empty", "", "", refusal.CodeInvalidToken, "auth_token"},
		{"unknown", unknown.Reveal(), "", refusal.CodeInvalidToken, "auth_token"},
		{"another relay's authority", untrusted.Reveal(), "", refusal.CodeInvalidToken, "auth_token"},
		{"another client's", wrongClient.Reveal(), "cli_2", refusal.CodeInvalidToken, "client_id"},
		{"bad client id", r.token().Reveal(), "a b", refusal.CodeInvalidParameter, "client_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := a.Configure(t.Context(), test.token, test.client)
			wantCode(t, err, test.code, test.field)
			if got := a.Auth(); got.TokenHint != r.token().Hint() || !got.Configured {
				t.Errorf("auth: got %+v, want that of before", got)
			}
			after, err := os.ReadFile(filepath.Join(a.cfg.StateDir, authFile))
			if err != nil || string(after) != string(before) {
				t.Errorf("auth.json has changed: %s", after)
			}
		})
	}
	wantState(t, a, StateConnected)
}

// TestAClientIsGivenByItsNameOrItsID: a person knows the name, as in
// `adit login TOKEN workshop-nas`.
func TestAClientIsGivenByItsNameOrItsID(t *testing.T) {
	r := newFakeRelay(t)
	for _, client := range []string{"cli_1", "test", "Test"} {
		a, _ := startAgent(t, Config{})
		if got, err := a.Configure(t.Context(), r.token().Reveal(), client); err != nil || got.ClientID != client {
			t.Errorf("%s: got %+v, %v", client, got, err)
		}
	}
}

func TestConfigureOfASilentRelayIsUnreachable(t *testing.T) {
	r := newFakeRelay(t)
	token := r.token()
	r.kill()
	a, _ := startAgent(t, Config{})
	_, err := a.Configure(t.Context(), token.Reveal(), "")
	wantCode(t, err, refusal.CodeRelayUnreachable, "")
	if a.Auth().Configured {
		t.Error("the token was taken")
	}
}

func TestFailedSaveTakesNoToken(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := startAgent(t, Config{})
	write := a.state.Write
	setWrite(a, func(string, []byte, os.FileMode) error { return errors.New("disk full") })
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got error %v, want the disk's", err)
	}
	if got := a.Auth(); got.Configured {
		t.Errorf("got %+v, want no token", got)
	}
	setWrite(a, write)
}

func TestTokenFromTheEnvironmentConfigures(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := startAgent(t, Config{StateDir: dir, AuthToken: r.token().Reveal()})
	wantState(t, a, StateConnected)
	stop()
	b, stop := startAgent(t, Config{StateDir: dir})
	wantState(t, b, StateConnected)
	stop()
	r.set(func() { r.addresses = []string{"no address"} })
	dir = t.TempDir()
	d, stop := startAgent(t, Config{StateDir: dir, AuthToken: r.token().Reveal()})
	wantState(t, d, StateConnected)
	stop()
	if saved, err := os.ReadFile(filepath.Join(dir, authFile)); err != nil || !strings.Contains(string(saved), r.token().Reveal()) {
		t.Errorf("with a relay whose address is none the token is not kept: %v", err)
	}
	c, _ := startAgent(t, Config{AuthToken: "adit_nonsense"})
	if got := c.Status(); got.State != StateUnconfigured || got.LastError == "" {
		t.Errorf("malformed: got %+v, want unconfigured with the reason", got)
	}
	if got := c.checkState(); got.Status != diagnosis.OK {
		t.Errorf("malformed: got %+v, want nothing of the state folder, which has nothing to do with it", got)
	}
	r.set(func() { r.addresses = nil })
	if _, err := c.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	if err := c.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.Status(); got.State != StateUnconfigured || got.LastError != "" {
		t.Errorf("forgotten: got %+v, want nothing more of the malformed one", got)
	}
}

func TestRefusedTokenIsNotTriedAgainUntilConfiguredAnew(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	r.set(func() { r.refuse = &wire.Problem{Code: wire.CodeUnauthorized, Message: "revoked"} })
	r.session().Close("bye")
	wantState(t, a, StateRejected)
	if got := a.Status(); !strings.Contains(got.LastError, "revoked") || got.Connected {
		t.Errorf("got %+v, want the reason", got)
	}
	r.mu.Lock()
	tried := len(r.hellos)
	r.mu.Unlock()
	_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80})
	wantCode(t, err, refusal.CodeRelayRejected, "")
	time.Sleep(1500 * time.Millisecond) // longer than the first back-off
	r.set(func() {
		if len(r.hellos) != tried {
			t.Errorf("tried %d times more", len(r.hellos)-tried)
		}
		r.refuse = nil
	})
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	wantState(t, a, StateConnected)
}

func TestRevocationRejectsAtOnce(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	r.session().events <- wire.Event{Type: wire.EventRevoked, Reason: "left the company"}
	wantState(t, a, StateRejected)
	if got := a.Status().LastError; !strings.Contains(got, "left the company") {
		t.Errorf("got %q, want the reason", got)
	}
}

func TestForgetClosesAndKeepsTunnels(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	s := r.session()
	if err := a.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if got := a.Status(); got.State != StateUnconfigured || got.Relay != "" {
		t.Errorf("got %+v", got)
	}
	wantTunnel(t, a, tun.ID, TunnelWaiting)
	data, err := os.ReadFile(filepath.Join(a.cfg.StateDir, authFile))
	if err != nil || strings.Contains(string(data), wire.TokenPrefix) {
		t.Errorf("auth.json still has the token: %s, %v", data, err)
	}
	if err := a.Forget(t.Context()); err != nil {
		t.Errorf("twice: %v", err)
	}
	_, err = a.Create(t.Context(), definition.Tunnel{LocalPort: 80})
	wantCode(t, err, refusal.CodeNotConfigured, "")
}

func TestPauseOutlivesARestart(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	s, err := a.Pause(t.Context())
	if err != nil || s.State != StatePaused || s.Connected {
		t.Fatalf("got %+v, %v", s, err)
	}
	wantTunnel(t, a, tun.ID, TunnelWaiting)
	stop()
	b, _ := startAgent(t, Config{StateDir: dir})
	if got := b.Status().State; got != StatePaused {
		t.Errorf("after a restart: got %s", got)
	}
	// A tunnel can be made while paused, and runs afterwards.
	late := mustCreate(t, b, definition.Tunnel{LocalPort: 81})
	if late.State != TunnelWaiting {
		t.Errorf("created while paused: got %s", late.State)
	}
	if s, err = b.Resume(t.Context()); err != nil || s.State == StatePaused {
		t.Fatalf("resume: got %+v, %v", s, err)
	}
	wantState(t, b, StateConnected) // the first attempt may fail on a slow machine
	wantTunnel(t, b, tun.ID, TunnelRunning)
	wantTunnel(t, b, late.ID, TunnelRunning)
}

func TestResumeWithoutAPauseWaitsForNothing(t *testing.T) {
	a, _ := configured(t, newFakeRelay(t), Config{})
	ended := make(chan error, 1)
	go func() {
		s, err := a.Resume(context.Background())
		if err == nil && s.State != StateConnected {
			err = fmt.Errorf("state %s", s.State)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(relayWait - 2*time.Second):
		t.Error("it still waits, for a session that there is")
	}
}

func TestRelayBackMeansAgentBack(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop"})
	r.kill()
	wantState(t, a, StateReconnecting)
	if got := a.Status(); got.Connected || got.LastError == "" || got.EndpointCount != 0 {
		t.Errorf("between: got %+v, want not connected, and why", got)
	}
	wantTunnel(t, a, tun.ID, TunnelWaiting)
	r.start()
	begin := time.Now()
	wantState(t, a, StateConnected)
	t.Logf("back after %s", time.Since(begin))
	again := wantTunnel(t, a, tun.ID, TunnelRunning)
	if again.PublicURL != tun.PublicURL || tun.PublicURL != "https://shop.relay.test" {
		t.Errorf("got %s after %s", again.PublicURL, tun.PublicURL)
	}
}

func TestNetworkChangeEndsTheWait(t *testing.T) {
	r := newFakeRelay(t)
	network := make(chan struct{})
	a, _ := configured(t, r, Config{NetworkChanged: network})
	r.kill()
	wantState(t, a, StateReconnecting)
	r.start()
	eventually(t, "connected", func() bool {
		select {
		case network <- struct{}{}:
		default:
		}
		return a.Status().Connected
	})
}

// TestAReplacedSessionIsTold also where the state and the way stay what they were: views
// show since when it is there.
func TestAReplacedSessionIsTold(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	before := *a.Status().ConnectedSince
	feed := a.Subscribe(nil)
	if _, err := a.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		e, err := feed.Next(ctx)
		if err != nil {
			t.Fatal("the feed does not tell of the new session")
		}
		if s, is := e.Data.(Status); is && s.ConnectedSince != nil && s.ConnectedSince.After(before) {
			return
		}
	}
}

func TestReconnectReplacesTheSession(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	first := r.session()
	s, err := a.Reconnect(t.Context())
	if err != nil || s.State != StateConnected {
		t.Fatalf("got %+v, %v", s, err)
	}
	if r.session() == first {
		t.Error("the session is the old one")
	}
	wantTunnel(t, a, tun.ID, TunnelRunning)
	select {
	case <-first.Done():
	case <-time.After(patience):
		t.Error("the old session was not closed")
	}
}

func TestDrainMovesToTheAddressesGiven(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	elsewhere := newFakeRelay(t)
	elsewhere.kill()
	elsewhere.authority = r.authority
	elsewhere.addr = ""
	elsewhere.start()
	r.session().events <- wire.Event{Type: wire.EventDrain, Addresses: []string{"not an address", elsewhere.addr}}
	eventually(t, "session elsewhere", func() bool { return elsewhere.session() != nil })
	eventually(t, "connected there", func() bool { s := a.Status(); return s.Connected && s.Relay == elsewhere.addr })
	wantTunnel(t, a, tun.ID, TunnelRunning)
	eventually(t, "claimed there", func() bool { _, ok := elsewhere.claim(tun.ID); return ok })
}

func TestFailedSaveLeavesThePauseAsItWas(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	write := a.state.Write
	full := func(string, []byte, os.FileMode) error { return errors.New("disk full") }
	session := r.session()
	setWrite(a, full)
	if _, err := a.Pause(t.Context()); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got error %v, want the disk's", err)
	}
	if s := a.Status(); s.State != StateConnected || session.Err() != nil {
		t.Errorf("got %+v, session %v, want it connected", s, session.Err())
	}
	setWrite(a, write)
	if _, err := a.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantState(t, a, StatePaused)
	setWrite(a, full)
	if _, err := a.Resume(t.Context()); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got error %v, want the disk's", err)
	}
	wantState(t, a, StatePaused)
	setWrite(a, write)
}

func TestTLSMovesToDTLSWhenItWorks(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	dtls := make(chan struct{}, 8)
	dial := func(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
		if cfg.Transport == link.DTLS {
			dtls <- struct{}{}
			cfg.Transport = link.TLS
			s, err := link.Dial(ctx, cfg)
			return disguised{s}, err
		}
		cfg.Transport = link.TLS
		return link.Dial(ctx, cfg)
	}
	network := make(chan struct{})
	a, err := New(Config{StateDir: t.TempDir(), Dial: dial, NetworkChanged: network})
	if err != nil {
		t.Fatal(err)
	}
	runAgent(t, a)
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "dtls", func() bool { return a.Status().Transport == "dtls" })
	if len(dtls) == 0 {
		t.Error("dtls was not dialled")
	}
	if got := a.Status(); !got.Connected {
		t.Errorf("got %+v", got)
	}
}

func TestStateFolderHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	a, err := New(Config{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{StateDir: dir}); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("second: got error %v, want ErrHeld", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := New(Config{StateDir: dir})
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	b.Close()
}

func TestBrokenStateIsPutAsideAndTold(t *testing.T) {
	for _, name := range []string{authFile, tunnelsFile} {
		for _, content := range []string{"", "{", `{"version":0}`, `{"version":1,"tunnels":7,"paused":7}`} {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := New(Config{StateDir: dir})
			if err != nil {
				t.Fatalf("%s %q: %v", name, content, err)
			}
			if got := a.Status().LastError; !strings.Contains(got, name) || strings.Contains(got, "Go ") {
				t.Errorf("%s %q: got last error %q, want it to name the file, and not in Go's words", name, content, got)
			}
			kept, _ := filepath.Glob(path + ".corrupt-*")
			if len(kept) != 1 {
				t.Errorf("%s %q: kept %v, want one file", name, content, kept)
			}
			a.Close()
		}
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(`{"version":99}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{StateDir: dir}); err == nil || !strings.Contains(err.Error(), "later adit") {
			t.Errorf("%s of a later version: got error %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s of a later version was touched: %v", name, err)
		}
	}
}

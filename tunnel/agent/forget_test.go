package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"adit/tunnel/agent/definition"
)

// deletedLoggedOut is an agent that has logged out of a relay with two tunnels,
// and had one of them deleted since.
func deletedLoggedOut(t *testing.T, r *fakeRelay, dir string) (a *Agent, gone, kept Tunnel, stop func()) {
	t.Helper()
	a, stop = configured(t, r, Config{StateDir: dir})
	gone = mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	kept = mustCreate(t, a, definition.Tunnel{LocalPort: 81})
	if err := a.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.DeleteTunnel(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	return a, gone, kept, stop
}

// Who logs out and in again owes the relay what was owed before.
func TestTunnelDeletedWithoutATokenIsGivenBackAtTheNextLogin(t *testing.T) {
	for name, restarted := range map[string]bool{"by the same daemon": false, "by the next": true} {
		t.Run(name, func(t *testing.T) {
			r := newFakeRelay(t)
			dir := t.TempDir()
			a, gone, kept, stop := deletedLoggedOut(t, r, dir)
			if restarted {
				stop()
				a, _ = startAgent(t, Config{StateDir: dir})
			}
			if got, _ := a.Tunnel(kept.ID); got.PublicURL != kept.PublicURL {
				t.Errorf("without a token: got the address %q, want %q as before", got.PublicURL, kept.PublicURL)
			}
			if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the deleted tunnel's claim is given back", func() bool { _, ok := r.claim(gone.ID); return !ok })
			if got := wantTunnel(t, a, kept.ID, TunnelRunning); got.PublicURL != kept.PublicURL {
				t.Errorf("after the login: got the address %q, want %q as before", got.PublicURL, kept.PublicURL)
			}
		})
	}
}

// What one relay gave is nothing to another, however long there was no token.
func TestAnotherRelayIsAskedForNothingThatTheFirstGave(t *testing.T) {
	tokens := map[string]func(*testing.T, *fakeRelay, string) *Agent{
		"configured": func(t *testing.T, r *fakeRelay, dir string) *Agent {
			a, _ := configured(t, r, Config{StateDir: dir})
			return a
		},
		"from the environment": func(t *testing.T, r *fakeRelay, dir string) *Agent {
			a, _ := startAgent(t, Config{StateDir: dir, AuthToken: r.token().Reveal()})
			return a
		},
	}
	for name, begin := range tokens {
		t.Run(name, func(t *testing.T) {
			first, second := newFakeRelay(t), newFakeRelay(t)
			dir := t.TempDir()
			_, _, kept, stop := deletedLoggedOut(t, first, dir)
			stop()
			a := begin(t, second, dir)
			wantTunnel(t, a, kept.ID, TunnelRunning)
			if c, _ := second.claim(kept.ID); c.Domain != "" {
				t.Errorf("the second relay was asked for %q, which the first had given", c.Domain)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if len(a.releases) != 0 {
				t.Errorf("the second relay is still owed %v", a.releases)
			}
		})
	}
}

// A power cut amid a write leaves a file with the token, which nobody would look
// for after a logout.
func TestWhatCutWritesHaveLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".auth.json.4711.tmp")
	if err := os.WriteFile(left, []byte(`{"auth_token":"adit_secret`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want the file gone", err)
	}
}

package agent

import (
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// A request that began when a session was the one in use may come to its claim
// when another has taken over and has the tunnel.
func TestSessionThatWasLeftTakesNoTunnelBack(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo)})
	visitor := r.mustVisit(tun.ID, wire.StreamRaw) // who keeps the session that is left
	claimed := func() (*tunnel, *live) {
		a.mu.Lock()
		defer a.mu.Unlock()
		own := a.tunnels[tun.ID]
		if own.first.live != a.cur {
			return own, nil
		}
		return own, own.first.live
	}
	own, left := claimed()
	if _, err := a.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "tunnel claimed on the new session", func() bool { _, l := claimed(); return l != nil && l != left })

	if err := left.claim(t.Context(), own, false); err == nil {
		t.Error("got no error from a claim on the session that was left")
	}
	visitor.Close()
	<-left.Link.Done()
	wantTunnel(t, a, tun.ID, TunnelRunning)
}

// Whoever shows people public_url must not show them one that is to be another's.
func TestMovedTunnelHasNoPublicURLUntilItIsClaimed(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	web := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop"})
	port := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: 22, RemotePort: 20001})
	if _, err := a.StopTunnel(t.Context(), port.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Change(t.Context(), port.ID, definition.Patch{RemotePort: new(20002)}); err != nil || got.PublicURL != "" {
		t.Errorf("stopped: got %q, %v, want no public URL", got.PublicURL, err)
	}
	if _, err := a.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Change(t.Context(), web.ID, definition.Patch{HostHeader: new("a.test")}); err != nil || got.PublicURL != web.PublicURL {
		t.Errorf("not moved: got %q, %v, want %q", got.PublicURL, err, web.PublicURL)
	}
	if got, err := a.Change(t.Context(), web.ID, definition.Patch{Domain: new("store")}); err != nil || got.PublicURL != "" {
		t.Errorf("paused: got %q, %v, want no public URL", got.PublicURL, err)
	}
	if _, err := a.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "tunnel at its new address", func() bool {
		got, _ := a.Tunnel(web.ID)
		return got.PublicURL == "https://store.relay.test"
	})
}

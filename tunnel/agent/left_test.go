package agent

import (
	"testing"

	"adit/tunnel/wire"
)

// A request that began when a session was the one in use may come to its claim
// when another has taken over and has the tunnel.
func TestSessionThatWasLeftTakesNoTunnelBack(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, TunnelSpec{Type: "tcp", LocalPort: origin(t, echo)})
	visitor := r.mustVisit(tun.ID, wire.StreamRaw) // who keeps the session that is left
	claimed := func() (*tunnel, *live) {
		a.mu.Lock()
		defer a.mu.Unlock()
		own := a.tunnels[tun.ID]
		if own.live != a.cur {
			return own, nil
		}
		return own, own.live
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
	<-left.session.Done()
	wantTunnel(t, a, tun.ID, TunnelRunning)
}

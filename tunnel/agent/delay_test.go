package agent

import (
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// TestTunnelThatTheRelayCannotServeNowSaysWhy: it is no failure, and is tried again.
func TestTunnelThatTheRelayCannotServeNowSaysWhy(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	const why = "another program has the port now"
	r.set(func() {
		r.onClaim = func(string, wire.Claim) *wire.Problem {
			return &wire.Problem{Code: wire.CodeUnavailable, Message: why}
		}
	})
	a.Reconnect(t.Context())
	is := func(state, text string) func() bool {
		return func() bool {
			got, _ := a.Tunnel(tun.ID)
			return got.State == state && got.Error == text
		}
	}
	eventually(t, "it says why", is(TunnelStarting, why))
	r.set(func() { r.onClaim = nil })
	eventually(t, "it runs, and says no more", is(TunnelRunning, ""))
}

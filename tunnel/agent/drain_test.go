package agent

import (
	"testing"

	"adit/tunnel/wire"
)

// TestDrainWithNowhereToGo has the only relay drain: it serves no longer, though
// its session still answers.
func TestDrainWithNowhereToGo(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, TunnelSpec{LocalPort: 80})
	away := &wire.Problem{Code: wire.CodeUnavailable, Message: "the relay is shutting down"}
	r.set(func() {
		r.refuse = away
		r.onClaim = func(string, wire.Claim) *wire.Problem { return away }
	})
	old := r.session()
	old.events <- wire.Event{Type: wire.EventDrain, Reason: "the relay is shutting down"}
	eventually(t, "not connected", func() bool { return !a.Status().Connected })
	if s := a.Status(); s.State != StateReconnecting || s.LastError == "" || s.EndpointCount != 0 {
		t.Errorf("got %+v", s)
	}
	wantTunnel(t, a, tun.ID, TunnelWaiting)
	if old.Err() != nil {
		t.Errorf("the session was not left to its visitors: %v", old.Err())
	}
	r.set(func() { r.refuse, r.onClaim = nil, nil })
	mustCreate(t, a, TunnelSpec{LocalPort: 81}) // waits for the next session
	wantState(t, a, StateConnected)
	wantTunnel(t, a, tun.ID, TunnelRunning)
}

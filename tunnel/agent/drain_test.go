package agent

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// TestDrainWithNowhereToGo has the only relay drain: it serves no longer, though
// its session still answers.
func TestDrainWithNowhereToGo(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
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
	mustCreate(t, a, definition.Tunnel{LocalPort: 81}) // waits for the next session
	wantState(t, a, StateConnected)
	wantTunnel(t, a, tun.ID, TunnelRunning)
}

// TestARelayThatSendsEverybodyOffIsNotStormed: it takes each session, and asks it to
// move on at once.
func TestARelayThatSendsEverybodyOffIsNotStormed(t *testing.T) {
	const span, most = 3 * time.Second, 25 // with pauses of 50 to 650 ms
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	r.set(func() { r.sendsOff = true })
	began, before := time.Now(), r.tries()
	r.session().events <- wire.Event{Type: wire.EventDrain, Reason: "not here"}
	eventually(t, "the end of the span", func() bool { return time.Since(began) > span })
	if came := r.tries() - before; came > most || came < 2 {
		t.Errorf("%d sessions in %v, want some and at most %d", came, span, most)
	}
	r.set(func() { r.sendsOff = false })
	wantState(t, a, StateConnected)
}

func TestReasonsOfARelayAreCutShort(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	r.session().events <- wire.Event{Type: wire.EventRevoked, Reason: strings.Repeat("é", 50_000)}
	eventually(t, "rejected", func() bool { return a.Status().State == StateRejected })
	if s := a.Status().LastError; len(s) > 1000 || !strings.Contains(s, "éé") || !utf8.ValidString(s) {
		t.Errorf("got %d bytes, %.80s", len(s), s)
	}
}

package agent

import (
	"strings"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

func TestWhenARefusedTokenIsTriedAgain(t *testing.T) {
	for seconds, pace := range map[int]time.Duration{
		-1: 0, 0: 0, 1: time.Second, 300: 5 * time.Minute, 1<<31 - 1: maxPardon,
	} {
		before := time.Now()
		p := pardonAfter(seconds)
		now := time.Now()
		switch {
		case p.pace != pace:
			t.Errorf("%d s: every %v, want %v", seconds, p.pace, pace)
		case pace == 0 && p.due(now.Add(1000*time.Hour)):
			t.Errorf("%d s: tried again, want never", seconds)
		case pace > 0 && (p.due(before.Add(pace/2-time.Second)) || !p.due(now.Add(pace*3/2))):
			t.Errorf("%d s: at %v, want about half of it to half as much again", seconds, p.at.Sub(now))
		}
	}
}

// expired is what a relay says of a client whose time is over.
func expired() *wire.Problem {
	return &wire.Problem{Code: wire.CodeUnauthorized, Message: "the client's time ended", RetryAfter: 1}
}

func (r *fakeRelay) tries() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.hellos)
}

// wantRejected holds a status to being rejected for what the relay said.
func wantRejected(t *testing.T, a *Agent) {
	t.Helper()
	if got := a.Status(); got.State != StateRejected || !strings.Contains(got.LastError, "the client's time ended") {
		t.Errorf("%s, %q, want rejected for its time", got.State, got.LastError)
	}
}

// TestAnExpiredClientComesBackByItself has its operator give it more time after
// a while.
func TestAnExpiredClientComesBackByItself(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	wantTunnel(t, a, tun.ID, TunnelRunning)
	r.set(func() { r.refuse = expired() })
	before := r.tries()
	r.session().events <- wire.Event{Type: wire.EventRevoked, Reason: "the client's time ended", RetryAfter: 1}
	wantState(t, a, StateRejected)
	wantRejected(t, a)
	eventually(t, "it asks again, and once more", func() bool { return r.tries() >= before+2 })
	wantRejected(t, a)
	r.set(func() { r.refuse = nil })
	wantState(t, a, StateConnected)
	wantTunnel(t, a, tun.ID, TunnelRunning)
}

// TestARelayThatIsAwayDoesNotPardonNorForget has the relay down when it would be
// asked.
func TestARelayThatIsAwayDoesNotPardonNorForget(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	r.set(func() { r.refuse = expired() })
	r.session().events <- wire.Event{Type: wire.EventRevoked, Reason: "the client's time ended", RetryAfter: 1}
	wantState(t, a, StateRejected)
	r.kill()
	ended := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.standing.attempts
	}
	before := ended()
	eventually(t, "it finds nobody, and once more", func() bool { return ended() >= before+2 })
	wantRejected(t, a)
	r.set(func() { r.refuse = nil })
	r.start()
	wantState(t, a, StateConnected)
}

// TestARefusalForGoodEndsThePardon revokes the client that had only expired.
func TestARefusalForGoodEndsThePardon(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	r.set(func() { r.refuse = &wire.Problem{Code: wire.CodeUnauthorized, Message: "it was revoked"} })
	r.session().events <- wire.Event{Type: wire.EventRevoked, Reason: "the client's time ended", RetryAfter: 1}
	eventually(t, "it has asked again", func() bool { return strings.Contains(a.Status().LastError, "it was revoked") })
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.standing.rejected || a.standing.pardon.due(time.Now().Add(1000*time.Hour)) {
		t.Errorf("rejected %v, to be tried again at %v, want never", a.standing.rejected, a.standing.pardon.at)
	}
}

package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TestWhatNeedsASessionSaysWhyThereIsNone: who is told to try again when it is
// connected does so for ever, if the relay takes the token no more.
func TestWhatNeedsASessionSaysWhyThereIsNone(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	want := func(code, reason string) {
		t.Helper()
		_, policy := a.Policy(t.Context(), tun.ID)
		_, set := a.SetPolicy(t.Context(), tun.ID, []byte(`{}`), nil)
		_, speed := a.MeasureSpeed(t.Context())
		_, visits := a.Invitations(t.Context())
		for what, err := range map[string]error{"policy": policy, "set policy": set, "speed": speed, "invitations": visits} {
			var no *refusal.Error
			if !errors.As(err, &no) || no.Code != code || !strings.Contains(no.Message, reason) {
				t.Errorf("%s: got %v, want %s with %q", what, err, code, reason)
			}
		}
	}
	if _, err := a.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(refusal.CodeRelayUnreachable, "paused; resume it first")
	if _, err := a.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantState(t, a, StateConnected)
	r.session().events <- wire.Event{Type: wire.EventRevoked, Reason: "left the company"}
	wantState(t, a, StateRejected)
	want(refusal.CodeRelayRejected, "left the company")
}

// TestAPauseDoesNotForgetWhyTheTokenWasRefused: whoever resumes has the token tried
// once more, and is told at once if it is refused still.
func TestAPauseDoesNotForgetWhyTheTokenWasRefused(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	r.set(func() { r.refuse = &wire.Problem{Code: wire.CodeUnauthorized, Message: "left the company"} })
	r.session().events <- wire.Event{Type: wire.EventRevoked, Reason: "left the company"}
	wantState(t, a, StateRejected)
	again := func() Status {
		t.Helper()
		if got, err := a.Pause(t.Context()); err != nil || got.State != StatePaused || got.LastError != "" {
			t.Errorf("paused: %s, %q, %v, want no error", got.State, got.LastError, err)
		}
		began := time.Now()
		got, err := a.Resume(t.Context())
		if err != nil || time.Since(began) > relayWait/2 {
			t.Errorf("resumed after %v: %v", time.Since(began), err)
		}
		return got
	}
	if got := again(); got.State != StateRejected || !strings.Contains(got.LastError, "left the company") {
		t.Errorf("resumed: %s, %q, want rejected with the reason", got.State, got.LastError)
	}
	r.set(func() { r.refuse = nil })
	if got := again(); got.State != StateConnected {
		t.Errorf("resumed: %s, %q, want connected", got.State, got.LastError)
	}
}

package relay

import (
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestSessionEndsWithItsToken checks that a token works for its overlap and no longer,
// even for sessions already connected with it: it may be in someone else's hands.
func TestSessionEndsWithItsToken(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := startRelay(t, testConfig(t.TempDir()))
	first := r.client(t, "shop")
	old := connect(t, first, "old")
	ended := func(a *fakeAgent) {
		t.Helper()
		if e := a.event(wire.EventRevoked); !strings.Contains(e.Reason, "token") || e.RetryAfter != 0 {
			t.Errorf("got %+v", e)
		}
		select {
		case <-a.session.Done():
		case <-time.After(patience):
			t.Fatal("the session lives on")
		}
	}
	_, second, err := r.Clients().Rotate(t.Context(), "shop", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	between := connect(t, second, "between")
	if old.session.Err() != nil || connect(t, first, "older").session.Err() != nil {
		t.Error("a session ended in the time of overlap")
	}
	_, third, err := r.Clients().Rotate(t.Context(), "shop", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ended(old) // by the clock, without a change
	ended(between)
	_, err = dialAgent(t, second, "between")
	problem(t, err, wire.CodeUnauthorized)
	now := connect(t, third, "now")
	_, fourth, err := r.Clients().Rotate(t.Context(), "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	ended(now) // at once
	if a := connect(t, fourth, "now"); a.session.Err() != nil {
		t.Error("the newest token does not work")
	}
}

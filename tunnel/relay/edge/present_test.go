package edge

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"adit/tunnel/relay/policy"
)

// TestOnlyWhatStandsStillIsIdle looks at two requests as time goes by, of which
// one moves a byte now and then.
func TestOnlyWhatStandsStillIsIdle(t *testing.T) {
	const limit = 2 * time.Hour
	var ep Endpoint
	enter := func() (context.Context, *countedWriter) {
		w := &countedWriter{ResponseWriter: httptest.NewRecorder()}
		ctx, v := ep.enter(t.Context(), w)
		t.Cleanup(v.leave)
		return ctx, w
	}
	slow, w := enter()
	still, _ := enter()
	conn, v := ep.enter(t.Context(), nil)
	defer v.leave()
	for now := time.Hour; now < 100*time.Hour; now += 30 * time.Minute {
		if now%(90*time.Minute) == 0 {
			w.in.Add(1)
		}
		ep.visits.endIdle(now, limit)
		if want := now-time.Hour >= limit; (still.Err() != nil) != want {
			t.Fatalf("after %v: ended %v, want %v", now-time.Hour, still.Err() != nil, want)
		}
	}
	if slow.Err() != nil {
		t.Error("a slow request was ended")
	}
	if conn.Err() != nil {
		t.Error("a connection, which looks after itself, was ended")
	}
}

// TestGuestsAreRemembered has every visit that was let in be one of which it is
// remembered what its path is read as.
func TestGuestsAreRemembered(t *testing.T) {
	var ep Endpoint
	for _, w := range []*countedWriter{nil, {ResponseWriter: httptest.NewRecorder()}} {
		_, v := ep.enter(t.Context(), w)
		v.letIn(policy.Guest{Target: "/"})
		v.leave()
		if v.guest.Reading == nil {
			t.Error("a guest is read anew each time")
		}
	}
}

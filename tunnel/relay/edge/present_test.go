package edge

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// TestOnlyWhatStandsStillIsIdle looks at two requests as time goes by, of which
// one moves a byte now and then.
func TestOnlyWhatStandsStillIsIdle(t *testing.T) {
	const limit = 2 * time.Hour
	var ep Endpoint
	enter := func() (context.Context, *countedWriter) {
		w := &countedWriter{ResponseWriter: httptest.NewRecorder()}
		ctx, leave := ep.enter(t.Context(), netip.MustParseAddr("192.0.2.1"), w)
		t.Cleanup(leave)
		return ctx, w
	}
	slow, w := enter()
	still, _ := enter()
	conn, leave := ep.enter(t.Context(), netip.MustParseAddr("192.0.2.1"), nil)
	defer leave()
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

package edge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/routing"
)

// TestOnlyWhatStandsStillIsIdle watches two requests over time, one of which moves a byte now
// and then.
func TestOnlyWhatStandsStillIsIdle(t *testing.T) {
	const limit = 2 * time.Hour
	var ep routing.Endpoint
	enter := func() (context.Context, *exchange.Writer) {
		w := exchange.NewWriter(httptest.NewRecorder(), &ep.Meter, httptest.NewRequest(http.MethodGet, "/", nil))
		ctx, v := ep.Enter(t.Context(), w)
		t.Cleanup(func() { ep.Leave(v) })
		return ctx, w
	}
	slow, w := enter()
	still, _ := enter()
	conn, v := ep.Enter(t.Context(), nil)
	defer ep.Leave(v)
	for now := time.Hour; now < 100*time.Hour; now += 30 * time.Minute {
		if now%(90*time.Minute) == 0 {
			w.CountIn(1)
		}
		ep.Visits.EndIdle(now, limit)
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

package relay

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestReportOfAnImpossibleTimeSpoilsNothing makes an agent report one error with a time
// that JSON cannot express in UTC, and one from the far future. The operator's lists
// still work, and neither error stays ahead of everything that is reported later.
func TestReportOfAnImpossibleTimeSpoilsNothing(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	report := func(text string) {
		t.Helper()
		if err := a.call(http.MethodPost, wire.PathErrors, json.RawMessage(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	report(`[{"time":"9999-12-31T23:59:59-12:00","message":"late"},{"time":"0000-01-01T00:00:00+12:00","message":"early"},{"time":"2999-01-01T00:00:00Z","message":"far"}]`)
	auth := map[string]string{"Authorization": "Bearer " + r.AdminToken()}
	for _, path := range []string{"/api/v1/errors", "/api/v1/clients/shop", "/api/v1/sessions"} {
		status, body, _ := r.ask(t, http.MethodGet, path, "", auth)
		if status != 200 || !json.Valid([]byte(body)) || !strings.Contains(body, "late") {
			t.Errorf("%s: got status %d and %q", path, status, body)
		}
	}
	for _, e := range r.operator().ErrorList() {
		if ago := time.Since(e.Time); ago.Abs() > time.Minute {
			t.Errorf("%q is said to be of %v", e.Message, e.Time)
		}
	}
	eventually(t, "the reports are stored", func() bool {
		activity, ok := r.store.Activities.Get(r.roster.All()[0].client.ID)
		return ok && len(activity.Errors) == 3
	})
}

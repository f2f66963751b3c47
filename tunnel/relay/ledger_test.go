package relay

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/ledger"
	"adit/tunnel/relay/store/auditlog"
	"adit/tunnel/relay/store/natstest"
)

// audited returns the actions and targets in the audit log, newest first.
func audited(t *testing.T, r *testRelay) []string {
	t.Helper()
	page, err := r.operator().AuditList(t.Context(), console.AuditQuestion{Limit: 1000})
	if err != nil {
		return nil // it is away
	}
	var list []string
	for _, e := range page.Items {
		list = append(list, e.Action+" "+e.Target)
	}
	return list
}

func count(list []string, v string) (n int) {
	for _, s := range list {
		if s == v {
			n++
		}
	}
	return n
}

// awaitEmpty waits until no lines of a relay are waiting, and its folder is empty.
func awaitEmpty(t *testing.T, r *testRelay) {
	t.Helper()
	eventually(t, "nothing waits for the audit log", func() bool {
		list, _ := os.ReadDir(filepath.Join(r.cfg.DataDir, ledger.Folder))
		return r.ledger.Waiting() == 0 && len(list) == 0
	})
}

// TestNoChangeLosesItsAuditLine makes the audit log unavailable. Clients can still be
// revoked, and the log has each line exactly once when it is back.
func TestNoChangeLosesItsAuditLine(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelayWith(t, Options{Config: cfg, auditWait: time.Second})
	back := server.StreamAway("adit_audit")
	answer[any](t, r, "POST", "/api/v1/clients", `{"name":"first"}`)
	bearer := map[string]string{"Authorization": "Bearer " + r.AdminToken()}
	if status, text, _ := r.ask(t, "POST", "/api/v1/clients/first/revoke", "", bearer); status != http.StatusNoContent {
		t.Errorf("a client is revoked: got %d %s", status, text)
	}
	answer[any](t, r, "PUT", "/api/v1/policies/shop", `{}`)
	if c, ok := r.store.Clients.Get("first"); !ok || c.Revoked.IsZero() {
		t.Errorf("the client is %+v", c)
	}
	waiting := func() float64 {
		_, page, _ := r.ask(t, "GET", "/metrics", "", bearer)
		return figure(page, "adit_relay_audit_lines_waiting")
	}
	if n := waiting(); n != 3 {
		t.Errorf("%v lines wait, want 3", n)
	}
	back()
	awaitEmpty(t, r)
	if n := waiting(); n != 0 {
		t.Errorf("%v lines wait though the log is back", n)
	}
	answer[any](t, r, "POST", "/api/v1/clients", `{"name":"second"}`)
	awaitEmpty(t, r)
	want := []string{"client.add second", "policy.set shop.relay.test", "client.revoke first", "client.add first"}
	if got := audited(t, r); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if v := answer[audit.Result](t, r, "GET", "/api/v1/audit/verify", ""); !v.OK {
		t.Errorf("the chain: %+v", v)
	}
}

// TestLinesThatWaitOutliveTheRelay makes a relay die in the middle of a change, between a
// change and its line, and after a line whose writing was not confirmed.
func TestLinesThatWaitOutliveTheRelay(t *testing.T) {
	dir := t.TempDir()
	r := startRelay(t, testConfig(dir))
	answer[any](t, r, "POST", "/api/v1/clients", `{"name":"first"}`)
	var done audit.Entry
	err := r.store.Audit.Newest(t.Context(), 0, func(e audit.Entry) bool { done = e; return false })
	if err != nil || done.Seq == 0 {
		t.Fatal(err)
	}
	awaitEmpty(t, r)
	ann := audit.Actor{Kind: audit.KindUser, Name: "ann"}
	if _, err := r.operator().BeginChange(audit.WithActor(t.Context(), ann), "POST /api/v1/clients"); err != nil {
		t.Fatal(err)
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	r.stop()
	for name, v := range map[string]auditlog.Late{
		"20260101T000000-1.json": {At: yesterday, Actor: ann, Action: "client.set", Target: "made"},
		"20260101T000000-2.json": {At: done.Time, Action: "client.add", Target: "first", Tried: &done},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ledger.Folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = startRelay(t, testConfig(dir))
	awaitEmpty(t, r)
	got := audited(t, r)
	for _, want := range []string{"change.unfinished POST /api/v1/clients", "client.set made", "client.add first"} {
		if count(got, want) != 1 {
			t.Errorf("%q is there %d times in %q, want once", want, count(got, want), got)
		}
	}
	err = r.store.Audit.Newest(t.Context(), 0, func(e audit.Entry) bool {
		if e.Target == "made" && (e.Actor != ann || !e.Time.Equal(yesterday.UTC().Truncate(time.Microsecond))) {
			t.Errorf("the late line is %+v", e)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
}

// TestChangesAreRefusedWhileTooManyLinesWait makes an operator change something while the
// maximum number of lines is waiting.
func TestChangesAreRefusedWhileTooManyLinesWait(t *testing.T) {
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelayWith(t, Options{Config: cfg, auditWait: 100 * time.Millisecond, auditMost: 2})
	back := server.StreamAway("adit_audit")
	defer back()
	r.ledger.Record(t.Context(), "login.refused", "ann", nil)
	bearer := map[string]string{"Authorization": "Bearer " + r.AdminToken()}
	status, text, h := r.ask(t, "POST", "/api/v1/clients", `{"name":"second"}`, bearer)
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "nothing was changed") || h.Get("Retry-After") == "" {
		t.Errorf("a change: got %d %s", status, text)
	}
	if _, ok := r.store.Clients.Get("second"); ok {
		t.Error("the change was made")
	}
}

package relay

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// TestOperatorReleasesWhatNobodyUses has a name claimed by a machine that no longer
// exists, and gives it to another client.
func TestOperatorReleasesWhatNobodyUses(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	header := map[string]string{"Authorization": "Bearer " + r.AdminToken()}
	release := func(target string) (int, string) {
		status, body, _ := r.ask(t, http.MethodDelete, "/api/v1/claims/"+target, "", header)
		return status, body
	}
	old := connect(t, r.client(t, "old"), "i1")
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}
	old.mustClaim("k", claim, startOrigin(t, text("old")))
	if status, body := release("shop"); status != http.StatusConflict || !strings.Contains(body, "in use now") {
		t.Errorf("while it runs: %d %s", status, body)
	}
	old.close()
	next := connect(t, r.client(t, "next"), "i2")
	_, err := next.claim("k", claim, "127.0.0.1:1")
	problem(t, err, wire.CodeTaken)
	var status int
	var body string
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if status, body = release("shop"); status != http.StatusConflict || time.Now().After(end) {
			break
		}
	}
	if status != http.StatusNoContent {
		t.Fatalf("once it does not run: %d %s", status, body)
	}
	next.mustClaim("k", claim, startOrigin(t, text("next")))
	if status, body := release("blog"); status != http.StatusNotFound || !strings.Contains(body, "no client has blog.relay.test") {
		t.Errorf("nobody's: %d %s", status, body)
	}
	if status, _ := release("not%20a%20name"); status != http.StatusBadRequest {
		t.Errorf("not a name: %d", status)
	}
	var last audit.Entry
	if err := r.store.Audit.Newest(t.Context(), 0, func(e audit.Entry) bool { last = e; return e.Action != "claim.release" }); err != nil || last.Target != "shop.relay.test" || !strings.Contains(string(last.Detail), `"old"`) {
		t.Errorf("the audit log has %+v, %v", last, err)
	}
}

// TestReleasedDomainIsToBeProvedAnew uses a client that has proved a name of its own. The
// console lists the name for as long as the proof is stored, so the proof is deleted with
// the claim.
func TestReleasedDomainIsToBeProvedAnew(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	o := r.operator()
	r.client(t, "old")
	id := r.Relay.store.Clients.List()[0].ID
	const name = "shop.example.org"
	if err := r.store.Proofs.Set(t.Context(), store.Proof{Domain: name, ClientID: id, Proved: time.Now(), By: store.ProvedByRecord}); err != nil {
		t.Fatal(err)
	}
	if list := o.DomainList(t.Context()); len(list) != 1 {
		t.Fatalf("the console lists %v", list)
	}
	if err := o.ReleaseClaim(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if list := o.DomainList(t.Context()); len(list) != 0 {
		t.Errorf("the console still lists %v", list)
	}
	var refusal *console.Error
	if err := o.ReleaseClaim(t.Context(), name); !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
		t.Errorf("once more: %v", err)
	}
}

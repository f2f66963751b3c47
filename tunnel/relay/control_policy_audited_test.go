package relay

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// setPolicyOf asks as an agent, and returns the status; 0: there was no answer.
func (a *fakeAgent) setPolicyOf(ctx context.Context, t *testing.T, document string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://relay"+wire.PathPolicy+"k", strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestAgentsPolicyWithoutAnAnswerIsAudited makes the policies unavailable while an agent
// sets one. The audit log says that the change was begun.
func TestAgentsPolicyWithoutAnAnswerIsAudited(t *testing.T) {
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelay(t, cfg)
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	back := server.StreamAway("KV_adit_policies")
	defer back()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // who asks does not wait for long
	defer cancel()
	if status := a.setPolicyOf(ctx, t, `{"deny":["192.0.2.1"]}`); status != 0 {
		t.Fatalf("got status %d", status)
	}
	eventually(t, "the audit log has it", func() bool { return count(audited(t, r), "change.unfinished policy of shop.relay.test") == 1 })
}

func TestAgentsPoliciesAreNotSetWhileTooManyLinesWait(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelayWith(t, Options{Config: cfg, auditWait: 500 * time.Millisecond, auditMost: 2})
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	back := server.StreamAway("adit_audit")
	r.ledger.Record(t.Context(), "login.refused", "ann", nil)
	if status := a.setPolicyOf(t.Context(), t, `{"deny":["192.0.2.1"]}`); status != http.StatusServiceUnavailable {
		t.Errorf("got status %d, want 503", status)
	}
	if n := len(r.store.Policies.List()); n != 0 {
		t.Errorf("%d policies are set", n)
	}
	back()
	awaitEmpty(t, r)
	if status := a.setPolicyOf(t.Context(), t, `{"deny":["192.0.2.1"]}`); status != http.StatusOK {
		t.Errorf("then status %d, want 200", status)
	}
}

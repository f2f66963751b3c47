package relay

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/store/natstest"
)

// TestChangeWithoutAnAnswerIsAudited makes the policies unavailable while one is being
// set. It is unknown whether the change will be made, so the audit log says that it was
// begun.
func TestChangeWithoutAnAnswerIsAudited(t *testing.T) {
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelay(t, cfg)
	back := server.StreamAway("KV_adit_policies")
	defer back()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // who asks does not wait for long
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+r.Addrs().Console+"/api/v1/policies/shop", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.AdminToken())
	req.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		t.Fatalf("got status %d", resp.StatusCode)
	}
	const want = "change.unfinished PUT /api/v1/policies/shop"
	eventually(t, "the audit log has it", func() bool { return count(audited(t, r), want) == 1 })
	awaitEmpty(t, r)
	answer[any](t, r, "POST", "/api/v1/clients", `{"name":"known"}`)
	if got := audited(t, r); count(got, want) != 1 || len(got) != 2 {
		t.Errorf("the audit log has %q", got)
	}
}

// TestRevocationWithoutAnAnswerIsNotSaidToBeMade makes the store unavailable while a
// client is being revoked.
func TestRevocationWithoutAnAnswerIsNotSaidToBeMade(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelay(t, cfg)
	r.client(t, "shop")
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := r.operator().DropClient(ctx, "shop"); err == nil {
		t.Fatal("a store that is away has answered")
	}
	server.Start()
	eventually(t, "the store is back", r.store.Connected)
	if c, _ := r.store.Clients.Get("shop"); !c.Active() {
		t.Fatal("the client is revoked")
	}
	awaitEmpty(t, r)
	if got := audited(t, r); count(got, "client.revoke shop") != 0 {
		t.Errorf("the audit log has %q", got)
	}
}

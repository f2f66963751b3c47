package relay

import (
	"context"
	"errors"
	"testing"

	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// TestRevocationIsAuditedThoughItsAskerHasGone revokes a client for somebody who leaves
// as soon as that is done, before the client's names are given back.
func TestRevocationIsAuditedThoughItsAskerHasGone(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	ctx, cancel := context.WithCancel(t.Context())
	r.store.Clients.OnChange(func(store.Client) { cancel() })
	if err := r.operator().DropClient(ctx, "shop"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the names were not given back", err)
	}
	if c, _ := r.store.Clients.Get("shop"); c.Active() {
		t.Fatal("the client is not revoked")
	}
	if got := audited(t, r); count(got, "client.revoke shop") != 1 {
		t.Errorf("the audit log has %q", got)
	}
}

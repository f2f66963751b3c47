package relay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestClientKeepsNoMoreProofsThanNames makes a client prove one name after another, and
// give back all but the first.
func TestClientKeepsNoMoreProofsThanNames(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.ClaimsPerClient = 3
	r := startRelay(t, cfg)
	a := connect(t, r.scoped(t, "shop", scope.Scope{Domains: []string{"*.shop.example"}, UnprovedDomains: true}), "i1")
	claim := func(name string) {
		t.Helper()
		a.mustClaim(name, wire.Claim{Type: wire.TypeHTTP, Domain: name + ".shop.example"}, "")
	}
	claim("kept")
	for i := range 6 {
		name := fmt.Sprint("n", i)
		claim(name)
		if err := a.call(http.MethodDelete, wire.PathClaims+name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, p := range r.store.Proofs.List() {
		got = append(got, strings.TrimSuffix(p.Domain, ".shop.example"))
	}
	if want := []string{"kept", "n4", "n5"}; !slices.Equal(got, want) {
		t.Errorf("proofs are kept of %q, want %q", got, want)
	}
	claim("n0") // again
}

// TestClientLeavesNoAuditEntriesWithoutEnd makes a client use up the entries that it may
// add.
func TestClientLeavesNoAuditEntriesWithoutEnd(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.scoped(t, "shop", scope.Scope{Domains: []string{"*.shop.example"}, UnprovedDomains: true, OwnPolicies: true})
	a := connect(t, token, "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "k.shop.example"}, "")
	client, _ := r.store.Clients.Get("shop")
	for r.trail.leave(client.ID) {
	}
	_, err := a.claim("new", wire.Claim{Type: wire.TypeHTTP, Domain: "new.shop.example"}, "")
	problem(t, err, wire.CodeUnavailable) // which is tried again
	err = a.call(http.MethodPut, wire.PathPolicy+"k", map[string]any{"deny": []string{"192.0.2.1"}}, nil)
	problem(t, err, wire.CodeLimit)
	_, err = a.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "k.shop.example", Policy: json.RawMessage(`{"rate":9}`), PolicyReplaces: true}, "")
	if p := problem(t, err, wire.CodeUnavailable); p.Field != "policy" { // which is tried again, too
		t.Errorf("a claim with a policy is refused for its field %q", p.Field)
	}
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "k.shop.example"}, "") // what it has stays
}

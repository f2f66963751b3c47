package relay

import (
	"encoding/json"
	"testing"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestClientReplacesNoPolicyThatTheOperatorSetsMeanwhile makes the operator set a policy
// after the check that the client may set its own, and before the client's is stored.
func TestClientReplacesNoPolicyThatTheOperatorSetsMeanwhile(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("x")))
	session := r.roster.All()[0]
	target := claims.TargetDomain("shop." + r.cfg.Domain)
	(&site{testRelay: r}).setPolicy(t, "shop", `{"deny":["192.0.2.1"]}`)
	before, _ := r.store.Policies.Get(target)
	for name, document := range map[string]string{"another one": `{"rate":1000}`, "none": `{}`} {
		err := session.setPolicy(t.Context(), target, json.RawMessage(document), nil)
		problem(t, err, wire.CodeForbidden)
		if now, ok := r.store.Policies.Get(target); !ok || string(now.Document) != string(before.Document) || now.By != "" {
			t.Fatalf("%s: the policy is %s by %q now", name, now.Document, now.By)
		}
	}
}

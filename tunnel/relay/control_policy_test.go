package relay

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestAgentsSetThePoliciesOfTheirTunnels goes through what the operator allows.
func TestAgentsSetThePoliciesOfTheirTunnels(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	s := &site{testRelay: r}
	a := connect(t, r.client(t, "shop"), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("x")))
	ask := func(method, document string) (wire.Policy, error) {
		var in any
		if document != "" {
			in = json.RawMessage(document)
		}
		var p wire.Policy
		err := a.call(method, wire.PathPolicy+"k", in, &p)
		return p, err
	}
	if p, err := ask(http.MethodGet, ""); err != nil || p.Editable || string(p.Document) != "{}" {
		t.Errorf("without a policy: %+v, %v", p, err)
	}
	_, err := ask(http.MethodPut, `{"deny":["127.0.0.1"]}`)
	problem(t, err, wire.CodeForbidden)
	r.rescope(t, "shop", scope.Scope{OwnPolicies: true})
	if _, err := ask(http.MethodPut, `{"dny":[]}`); problem(t, err, wire.CodeInvalid).Field != "dny" {
		t.Errorf("an unknown field: %v", err)
	}
	for _, hash := range []string{"$2b$13$abcdefghijklmnopqrstuuWVVG5QYgn2zYrBnW9Jq0GqjPGkV3z2K", "$argon2id$v=19$m=262144,t=10,p=1$c2FsdHNhbHQ$c3Vtc3Vtc3Vtc3Vtc3Vtcw"} {
		_, err := ask(http.MethodPut, `{"basic_auth":[{"name":"ann","hash":"`+hash+`"}]}`)
		if p := problem(t, err, wire.CodeInvalid); p.Field != "basic_auth[0].hash" || !strings.Contains(p.Message, "costs the relay too much") {
			t.Errorf("%s: %v", hash, err)
		}
		s.setPolicy(t, "shop", `{"basic_auth":[{"name":"ann","hash":"`+hash+`"}]}`) // the operator may
		if err := r.operator().DeletePolicy(t.Context(), "shop", nil); err != nil {
			t.Fatal(err)
		}
	}
	p, err := ask(http.MethodPut, `{"deny":["127.0.0.1"],"basic_auth":[{"name":"ann","password":"hush-hush"}]}`)
	if err != nil || !p.Editable || p.SetBy != "shop" || strings.Contains(string(p.Document), "$2a$") {
		t.Errorf("set: %s, %+v, %v", p.Document, p, err)
	}
	v := r.visitor(t)
	if status, _ := get(t, v, g.PublicURL); status != 403 {
		t.Errorf("the visitor got status %d", status)
	}
	var last audit.Entry
	if err := r.store.Audit.Newest(t.Context(), 0, func(e audit.Entry) bool { last = e; return false }); err != nil || last.Action != "policy.set" || last.Actor.Kind != audit.KindClient || last.Actor.Name != "shop" {
		t.Errorf("the audit log has %+v, %v", last, err)
	}
	if _, err := ask(http.MethodPut, `{}`); err != nil {
		t.Error(err)
	}
	if status, _ := get(t, v, g.PublicURL); status != 200 {
		t.Errorf("without a policy the visitor got status %d", status)
	}
	s.setPolicy(t, "shop", `{"rate":1000}`)
	if p, err := ask(http.MethodGet, ""); err != nil || p.Editable || p.SetBy != "operator" || !strings.Contains(string(p.Document), "1000") {
		t.Errorf("the operator's: %s %+v, %v", p.Document, p, err)
	}
	_, err = ask(http.MethodPut, `{}`)
	problem(t, err, wire.CodeForbidden)
	// Another client's tunnel is none of its business.
	b := connect(t, r.scoped(t, "other", scope.Scope{OwnPolicies: true}), "i2")
	problem(t, b.call(http.MethodGet, wire.PathPolicy+"k", nil, nil), wire.CodeInvalid)
}

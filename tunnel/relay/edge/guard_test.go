package edge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/policy"
)

// TestPolicyThatChangesAsAVisitorComes changes a policy after it has decided on a request but
// before the visit is registered.
func TestPolicyThatChangesAsAVisitorComes(t *testing.T) {
	closed := policy.New(policy.Document{Deny: []string{"192.0.2.0/24"}}, nil)
	for name, before := range map[string]*policy.Policy{"none": nil, "another": policy.New(policy.Document{}, nil)} {
		asked := 0
		e := New(Config{Policy: func(string) *policy.Policy {
			if asked++; asked == 1 {
				return before
			}
			return closed
		}})
		h, ep, answer := &handler{edge: e}, new(routing.Endpoint), httptest.NewRecorder()
		w := exchange.NewWriter(answer, &ep.Meter, httptest.NewRequest(http.MethodGet, "/", nil))
		to := &exchange.Route{Endpoint: ep, Visit: origin.Visit{Visitor: netip.MustParseAddrPort("192.0.2.1:1")}}
		refused := h.guard(w, httptest.NewRequest(http.MethodGet, "/", nil), to, func(context.Context, *http.Request) {
			t.Errorf("%s: the request is let in", name)
		})
		if refused != policy.RuleDeny || answer.Code != http.StatusForbidden {
			t.Errorf("%s: refused by %q with status %d", name, refused, answer.Code)
		}
	}
}

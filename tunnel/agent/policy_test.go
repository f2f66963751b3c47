package agent

import (
	"encoding/json"
	"net/http"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TestPolicyIsReplacedAsTheCallerExpects has the relay hear what may be replaced,
// and the caller that something else is there.
func TestPolicyIsReplacedAsTheCallerExpects(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	id := mustCreate(t, a, definition.Tunnel{LocalPort: 80}).ID
	_, err := a.Policy(t.Context(), id)
	wantCode(t, err, refusal.CodeRelayRejected, "") // it is too old
	r.set(func() {
		r.onPolicy = func(w http.ResponseWriter, q *http.Request) {
			if match := q.Header.Get("If-Match"); match != "" && match != `"1"` {
				answer(w, http.StatusPreconditionFailed, &wire.Problem{Code: wire.CodeChanged, Message: "it has changed"})
				return
			}
			w.Header().Set("ETag", `"1"`)
			answer(w, http.StatusOK, wire.Policy{Document: json.RawMessage("{}")})
		}
	})
	p, err := a.Policy(t.Context(), id)
	if err != nil || p.Tag != `"1"` {
		t.Fatalf("got tag %s, error %v", p.Tag, err)
	}
	set := func(match ...string) error {
		_, err := a.SetPolicy(t.Context(), id, json.RawMessage("{}"), http.Header{"If-Match": match})
		return err
	}
	for _, match := range [][]string{{p.Tag}, nil} {
		if err := set(match...); err != nil {
			t.Errorf("If-Match %s: %v", match, err)
		}
	}
	wantCode(t, set(`"0"`), refusal.CodeChanged, "")
}

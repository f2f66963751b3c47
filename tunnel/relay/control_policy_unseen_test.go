package relay

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestAgentsPolicyIsNotReplacedUnseen makes two writers of one client change a policy
// that both have read.
func TestAgentsPolicyIsNotReplacedUnseen(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	ask := func(want int, method, document string, header ...string) (tag, answer string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://relay"+wire.PathPolicy+"k", strings.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := a.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var body json.RawMessage
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || resp.StatusCode != want {
			t.Fatalf("%s %s %q: got status %d, want %d: %s, %v", method, document, header, resp.StatusCode, want, body, err)
		}
		return resp.Header.Get("ETag"), string(body)
	}
	const mine, theirs = `{"deny":["192.0.2.1"]}`, `{"deny":["192.0.2.2"]}`
	const put, changed = http.MethodPut, http.StatusPreconditionFailed

	none, _ := ask(200, http.MethodGet, "")
	first, _ := ask(200, put, theirs, "If-Match", none)
	if first == "" || none == "" || first == none {
		t.Fatalf("got tags %q of nothing and %q of a policy, want two", none, first)
	}
	if _, answer := ask(changed, put, mine, "If-Match", none); !strings.Contains(answer, `"changed"`) || !strings.Contains(answer, "has changed since it was read") {
		t.Errorf("a policy is there where none was: %s", answer)
	}
	ask(changed, put, mine, "If-None-Match", "*")
	if again, answer := ask(200, http.MethodGet, ""); again != first || !strings.Contains(answer, "192.0.2.2") {
		t.Errorf("after the refusals: tag %s, want %s: %s", again, first, answer)
	}
	second, _ := ask(200, put, mine, "If-Match", first)
	ask(changed, put, `{}`, "If-Match", first)
	if tag, _ := ask(200, put, `{}`, "If-Match", second); tag != none {
		t.Errorf("got tag %s of nothing, want %s", tag, none)
	}
	ask(changed, put, mine, "If-Match", second)
	ask(changed, put, `{}`, "If-Match", second)
	ask(200, put, mine, "If-None-Match", "*")
	ask(200, put, theirs) // who does not ask for it is not held up
	if _, answer := ask(400, put, mine, "If-Match", "1"); !strings.Contains(answer, `"field":"If-Match"`) {
		t.Errorf("a tag without quotes: %s", answer)
	}
}

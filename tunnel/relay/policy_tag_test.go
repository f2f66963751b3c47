package relay

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestPolicyIsNotReplacedUnseen has two administrators change one policy that
// both have read.
func TestPolicyIsNotReplacedUnseen(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	const path = "/api/v1/policies/shop"
	ask := func(want int, method, path, body string, header ...string) (string, string) {
		t.Helper()
		h := map[string]string{"Authorization": "Bearer " + r.AdminToken()}
		for i := 0; i+1 < len(header); i += 2 {
			h[header[i]] = header[i+1]
		}
		status, answer, got := r.ask(t, method, path, body, h)
		if status != want {
			t.Fatalf("%s %s %q: got status %d, want %d: %s", method, body, header, status, want, answer)
		}
		return got.Get("ETag"), answer
	}
	denied := func() string {
		t.Helper()
		var v struct {
			Data struct{ Policy struct{ Deny []string } }
		}
		_, answer := ask(200, "GET", path, "")
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			t.Fatal(err)
		}
		return strings.Join(v.Data.Policy.Deny, " ")
	}
	const mine, theirs = `{"deny":["192.0.2.1"]}`, `{"deny":["192.0.2.2"]}`

	ask(http.StatusPreconditionFailed, "PUT", path, mine, "If-Match", `"none"`)
	made, _ := ask(200, "PUT", path, mine, "If-None-Match", "*")
	if read, _ := ask(200, "GET", path, ""); read != made || !strings.HasPrefix(made, `"`) {
		t.Fatalf("the tag is %s after PUT and %s after GET", made, read)
	}
	_, answer := ask(http.StatusPreconditionFailed, "PUT", path, theirs, "If-None-Match", "*")
	if !strings.Contains(answer, `"precondition_failed"`) || !strings.Contains(answer, "shop.relay.test has changed since") {
		t.Errorf("got %s", answer)
	}
	next, _ := ask(200, "PUT", path, theirs, "If-Match", made)
	if next == made {
		t.Errorf("the tag is still %s", next)
	}
	ask(http.StatusPreconditionFailed, "PUT", path, mine, "If-Match", made)
	ask(http.StatusPreconditionFailed, "DELETE", path, "", "If-Match", made)
	if got := denied(); got != "192.0.2.2" {
		t.Errorf("after the refusals %q is denied", got)
	}
	// A proxy that compresses weakens the tags on the way; lists and * are of the standard.
	next, _ = ask(200, "PUT", path, mine, "If-Match", `"x", W/`+next)
	ask(200, "PUT", path, mine, "If-Match", "*")
	ask(200, "PUT", path, mine) // who does not ask for it is not held up
	ask(http.StatusPreconditionFailed, "DELETE", path, "", "If-Match", next)
	next, _ = ask(200, "GET", path, "")
	ask(204, "DELETE", path, "", "If-Match", next)
	ask(http.StatusPreconditionFailed, "PUT", path, mine, "If-Match", next)
	ask(http.StatusPreconditionFailed, "DELETE", path, "", "If-Match", next)
	for value, header := range map[string]string{"1": "If-Match", `"1`: "If-Match", `1"`: "If-Match", `""`: "If-Match", `"a"`: "If-None-Match"} {
		if _, answer := ask(400, "PUT", path, mine, header, value); !strings.Contains(answer, `"field":"`+header+`"`) {
			t.Errorf("%s %s: got %s", header, value, answer)
		}
	}
	ask(404, "GET", path, "")
}

package relay

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// asker sends a request to the console's API as an administrator, and returns the tag and
// the text of an answer that has the wanted status.
type asker func(want int, method, path, body string, header ...string) (tag, answer string)

func newAsker(t *testing.T, r *testRelay) asker {
	return func(want int, method, path, body string, header ...string) (string, string) {
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
}

// TestPolicyIsNotReplacedUnseen makes two administrators change a policy that both have
// read.
func TestPolicyIsNotReplacedUnseen(t *testing.T) {
	ask := newAsker(t, startRelay(t, testConfig(t.TempDir())))
	const path = "/api/v1/policies/shop"
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

	replaceUnseen(t, ask, path, mine, theirs, "shop.relay.test has changed since")
	if got := denied(); got != "192.0.2.2" {
		t.Errorf("after the refusals %q is denied", got)
	}
	// A proxy that compresses weakens the tags on the way; lists and * are of the standard.
	next, _ := ask(200, "GET", path, "")
	next, _ = ask(200, "PUT", path, mine, "If-Match", `"x", W/`+next)
	ask(200, "PUT", path, mine, "If-Match", "*")
	ask(200, "PUT", path, mine) // who does not ask for it is not held up
	removeUnseen(ask, path, mine, next)
	for value, header := range map[string]string{"1": "If-Match", `"1`: "If-Match", `1"`: "If-Match", `""`: "If-Match", `"a"`: "If-None-Match"} {
		if _, answer := ask(400, "PUT", path, mine, header, value); !strings.Contains(answer, `"field":"`+header+`"`) {
			t.Errorf("%s %s: got %s", header, value, answer)
		}
	}
	ask(404, "GET", path, "")
}

// TestSinkIsNotReplacedUnseen is the same for a sink. Adding one does not replace another
// with the same name.
func TestSinkIsNotReplacedUnseen(t *testing.T) {
	ask := newAsker(t, startRelay(t, testConfig(t.TempDir())))
	const path = "/api/v1/sinks/siem"
	const mine, theirs = `{"type":"webhook","url":"https://siem.example/mine"}`, `{"type":"webhook","url":"https://siem.example/theirs"}`
	replaceUnseen(t, ask, path, mine, theirs, "the sink siem has changed since")
	if _, answer := ask(200, "GET", path, ""); !strings.Contains(answer, "/theirs") {
		t.Errorf("after the refusals there is %s", answer)
	}
	old, _ := ask(200, "GET", path, "")
	ask(200, "PUT", path, mine)
	removeUnseen(ask, path, mine, old)
	ask(404, "GET", path, "")
	// Who sends back what was read changes nothing: 0 is a facility, too.
	ask(200, "PUT", path, `{"type":"syslog","address":"tls://log.example:6514","facility":0}`)
	if _, answer := ask(200, "GET", path, ""); !strings.Contains(answer, `"facility":0`) {
		t.Errorf("the facility is not in %s", answer)
	}
}

// TestScopeIsNotReplacedUnseen is the same for what a client may do. A new token does not
// change that, and a client that takes the name of a revoked one is a different client.
func TestScopeIsNotReplacedUnseen(t *testing.T) {
	ask := newAsker(t, startRelay(t, testConfig(t.TempDir())))
	const path = "/api/v1/clients/carol"
	const mine, theirs = `{"scope":{"tunnels":3}}`, `{"scope":{"types":["http"],"expires_at":"2036-05-04T10:20:30.5+02:00"}}`
	ask(http.StatusCreated, "POST", "/api/v1/clients", `{"name":"carol"}`)
	made, _ := ask(200, "GET", path, "")
	next, _ := ask(200, "PATCH", path, theirs, "If-Match", made)
	if read, _ := ask(200, "GET", path, ""); read != next || next == made || !strings.HasPrefix(next, `"`) {
		t.Fatalf("the tag was %s, is %s after PATCH and %s after GET", made, next, read)
	}
	_, answer := ask(http.StatusPreconditionFailed, "PATCH", path, mine, "If-Match", made)
	if !strings.Contains(answer, `"precondition_failed"`) || !strings.Contains(answer, "what the client carol may do has changed since") {
		t.Errorf("got %s", answer)
	}
	if _, answer := ask(200, "GET", path, ""); !strings.Contains(answer, `"types":["http"]`) || strings.Contains(answer, `"tunnels":3`) {
		t.Errorf("after the refusal there is %s", answer)
	}
	ask(200, "POST", path+"/rotate", `{}`)
	next, _ = ask(200, "PATCH", path, mine, "If-Match", next)
	ask(200, "PATCH", path, mine) // who does not ask for it is not held up
	ask(400, "PATCH", path, mine, "If-Match", "1")
	ask(http.StatusNotFound, "PATCH", "/api/v1/clients/dave", mine, "If-Match", next)
	ask(http.StatusNoContent, "DELETE", path, "")
	ask(400, "PATCH", path, mine, "If-Match", next)
	ask(http.StatusCreated, "POST", "/api/v1/clients", `{"name":"carol","scope":{"tunnels":3}}`)
	ask(http.StatusPreconditionFailed, "PATCH", path, theirs, "If-Match", next)
}

// replaceUnseen creates something at path, and checks that it can be replaced only by
// somebody who knows the current version.
func replaceUnseen(t *testing.T, ask asker, path, mine, theirs, told string) {
	t.Helper()
	ask(http.StatusPreconditionFailed, "PUT", path, mine, "If-Match", `"none"`)
	made, _ := ask(200, "PUT", path, mine, "If-None-Match", "*")
	if read, _ := ask(200, "GET", path, ""); read != made || !strings.HasPrefix(made, `"`) {
		t.Fatalf("the tag is %s after PUT and %s after GET", made, read)
	}
	_, answer := ask(http.StatusPreconditionFailed, "PUT", path, theirs, "If-None-Match", "*")
	if !strings.Contains(answer, `"precondition_failed"`) || !strings.Contains(answer, told) {
		t.Errorf("got %s", answer)
	}
	next, _ := ask(200, "PUT", path, theirs, "If-Match", made)
	if next == made {
		t.Errorf("the tag is still %s", next)
	}
	ask(http.StatusPreconditionFailed, "PUT", path, mine, "If-Match", made)
	ask(http.StatusPreconditionFailed, "DELETE", path, "", "If-Match", made)
}

// removeUnseen checks that something at path can be removed only by somebody who knows
// the current version.
func removeUnseen(ask asker, path, mine, old string) {
	ask(http.StatusPreconditionFailed, "DELETE", path, "", "If-Match", old)
	next, _ := ask(200, "GET", path, "")
	ask(http.StatusNoContent, "DELETE", path, "", "If-Match", next)
	ask(http.StatusPreconditionFailed, "PUT", path, mine, "If-Match", next)
	ask(http.StatusPreconditionFailed, "DELETE", path, "", "If-Match", next)
}

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adit/cli/definition"
	"adit/localapi/client"
)

// hostile is what a stranger would like a person's screen to obey: clearing it,
// a line that seems to be the program's own, and text that is read backwards.
const hostile = "/\x1b[2J\x1b]0;owned\x07\n203.0.113.9 was let in\t\u009b31m\u202eder\u2066\ufeff"

func TestWhatStrangersSentDoesNotSteerTheScreen(t *testing.T) {
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{
		"/api/v1/access":       `{"data":{"items":[{"time":"2026-05-04T10:20:30Z","visitor":"192.0.2.1","method":"GET","host":"shop.example.com","path":%s,"status":404}],"complete":true}}`,
		"/api/v1/audit":        `{"data":{"items":[{"seq":1,"time":"2026-05-04T10:20:30Z","actor":{"kind":"client","name":%s},"action":"policy.set","target":"x"}]}}`,
		"/api/v1/clients/shop": `{"data":{"name":"shop","errors":[{"time":"2026-05-04T10:20:30Z","message":%s}]}}`,
		"/api/v1/sinks":        `{"error":{"code":"internal","message":%s}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, answers[r.URL.Path], text)
	}))
	defer server.Close()
	for _, args := range [][]string{{"relay", "access"}, {"relay", "audit", "list"}, {"relay", "client", "show", "shop"}, {"relay", "sink", "list"}} {
		env, out, errs := testEnv("")
		env.Getenv = func(name string) string {
			return map[string]string{"ADIT_RELAY_ADMIN_URL": server.URL, "ADIT_RELAY_ADMIN_TOKEN": "x"}[name]
		}
		Run(t.Context(), env, args)
		said := out.String() + errs.String()
		if !strings.Contains(said, "was let in") {
			t.Errorf("%v: got %q, want the text shown", args, said)
		}
		if strings.ContainsAny(said, "\x1b\x07\u009b\u202e\u2066\ufeff") || strings.Contains(said, "\n203.0.113.9") {
			t.Errorf("%v: got %q, which the screen obeys", args, said)
		}
	}
}

func TestWhatARelayCallsAnAddressDoesNotSteerTheScreen(t *testing.T) {
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	d := newFakeDaemon(t)
	d.set("GET /api/v1/tunnels", fmt.Sprintf(`{"data":{"items":[{"id":"t_1","name":%s,"type":"https","state":"running","public_url":%s}]}}`, text, text))
	d.set("GET /api/v1/endpoints", fmt.Sprintf(`{"data":{"items":[{"id":"e_1","name":%s,"public_url":%s,"local":%s,"state":"running"}]}}`, text, text, text))
	d.set("GET /api/v1/status", fmt.Sprintf(`{"data":{"state":"connecting","relay":%s}}`, text))
	for _, args := range [][]string{{"tunnel", "list"}, {"endpoints"}, {"status"}} {
		_, said, _ := run(t, "", args...)
		if !strings.Contains(said, "was let in") || strings.ContainsAny(said, "\x1b\x07\u009b") || strings.Contains(said, "\n203.0.113.9") {
			t.Errorf("%v: got %q, which the screen obeys", args, said)
		}
	}
}

func TestWhatARelaySaysOfATunnelDoesNotSteerTheScreen(t *testing.T) {
	var out strings.Builder
	definition.Write(&out, client.Tunnel{Name: "web", Error: hostile})
	if said := out.String(); !strings.Contains(said, "was let in") || strings.ContainsAny(said, "\x1b\x07\u009b\u202e\u2066\ufeff") || strings.Contains(said, "\n203.0.113.9") {
		t.Errorf("got %q, which the screen obeys", said)
	}
}

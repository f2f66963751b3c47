package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestALongAuditLogIsListedToItsEnd has a relay that finds one entry in the first part of
// its log, none in the second and one in the third.
func TestALongAuditLogIsListedToItsEnd(t *testing.T) {
	entry := func(seq int, action string) string {
		return fmt.Sprintf(`{"seq":%d,"time":"2026-05-04T10:20:30Z","actor":{"kind":"user","name":"ann"},"action":%q,"prev":"","hash":""}`, seq, action)
	}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("limit")+" before "+q.Get("before"))
		if q.Get("q") != "shop" || q.Get("since") != "2026-05-01T00:00:00Z" {
			t.Errorf("asked %s", r.URL.RawQuery)
		}
		fmt.Fprint(w, map[string]string{
			"":     `{"data":{"items":[` + entry(9000, "client.revoke") + `],"next":6001}}`,
			"6001": `{"data":{"items":[],"next":3001}}`,
			"3001": `{"data":{"items":[` + entry(7, "client.add") + `]}}`,
		}[q.Get("before")])
	}))
	defer server.Close()
	env, out, errs := testEnv("")
	env.Getenv = func(name string) string {
		return map[string]string{"ADIT_RELAY_ADMIN_URL": server.URL, "ADIT_RELAY_ADMIN_TOKEN": "x"}[name]
	}
	code := Run(t.Context(), env, []string{"relay", "audit", "list", "--find", "shop", "--since", "2026-05-01", "--limit", "20"})
	oldest, newest := strings.Index(out.String(), "client.add"), strings.Index(out.String(), "client.revoke")
	if code != 0 || oldest < 0 || newest < oldest {
		t.Errorf("got %d, %s%s", code, out, errs)
	}
	if got, want := strings.Join(asked, ", "), "20 before , 19 before 6001, 19 before 3001"; got != want {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

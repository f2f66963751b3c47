package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adit/cli/command"
)

// TestRelayCommandsTellAnAgentFromARelay point the relay's commands at a daemon.
func TestRelayCommandsTellAnAgentFromARelay(t *testing.T) {
	daemon := newFakeDaemon(t)
	t.Setenv("ADIT_RELAY_ADMIN_URL", daemon.URL)
	t.Setenv("ADIT_RELAY_ADMIN_TOKEN", "secret")
	for _, args := range [][]string{{"relay", "status"}, {"relay", "client", "list"}, {"relay", "client", "add", "laptop"}} {
		code, _, errs := run(t, "", args...)
		if want := "is the local API of an agent, not a relay's console"; code != command.ExitFailed || !strings.Contains(errs, want) {
			t.Errorf("%v: got exit code %d, %q, want %d and %q", args, code, errs, command.ExitFailed, want)
		}
	}
}

// TestTheSchemeOfAConsoleIsNamed has the address of a console begin with https, as that of
// one behind a proxy does.
func TestTheSchemeOfAConsoleIsNamed(t *testing.T) {
	console := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(console.Close)
	t.Setenv("ADIT_RELAY_ADMIN_URL", strings.Replace(console.URL, "http:", "https:", 1))
	t.Setenv("ADIT_RELAY_ADMIN_TOKEN", "t")
	code, _, errs := run(t, "", "relay", "client", "list")
	if want := "uses http, not https; set ADIT_RELAY_ADMIN_URL to http://"; code != command.ExitFailed || !strings.Contains(errs, want) {
		t.Errorf("got code %d, %q", code, errs)
	}
}

// TestStatusTellsWhatIsWrongWithTheStore: visitors are served all the same, so nothing
// else shows it.
func TestStatusTellsWhatIsWrongWithTheStore(t *testing.T) {
	for store, want := range map[string]string{"here": "", "full": "store      full: it has no room for what is written", "later": "store      later"} {
		relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/status" {
				_, _ = io.WriteString(w, `{"data":{"items":[]}}`)
				return
			}
			_, _ = io.WriteString(w, `{"data":{"status":"ok","domain":"d.test","store":"`+store+`"}}`)
		}))
		t.Setenv("ADIT_RELAY_ADMIN_URL", relay.URL)
		t.Setenv("ADIT_RELAY_ADMIN_TOKEN", "t")
		code, out, errs := run(t, "", "relay", "status")
		if code != command.ExitDone || !strings.Contains(out, want) || want == "" && strings.Contains(out, "store") {
			t.Errorf("%s: got code %d, %q, %q, want %q", store, code, out, errs, want)
		}
		relay.Close()
	}
}

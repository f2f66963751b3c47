package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/cli/command"
)

// TestAShortFormGuardsWhatItPublishes: the tunnel is made with the policy that lets in only
// who knows the password and comes from the addresses, and the password is shown.
func TestAShortFormGuardsWhatItPublishes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("opensesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newFakeDaemon(t)
	d.streamEvents("status " + statusJSON)
	out, errs, end := startLive(t, false, "http", "3000", "--json", "--password_file", file, "--allow", "203.0.113.0/24")
	out.waitFor(t, "\n}")
	var shown struct{ ID, User, Password string }
	if err := json.Unmarshal([]byte(out.String()), &shown); err != nil || shown.ID != "t_1" || shown.User == "" || shown.Password != "opensesame" {
		t.Errorf("shown is %s, %v; want the tunnel, the user and the password", out, err)
	}
	var asked struct {
		Ephemeral bool
		Policy    struct {
			Allow     []string
			BasicAuth []struct{ Name, Password string } `json:"basic_auth"`
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(d.changes()[0], "POST /api/v1/tunnels ")), &asked); err != nil {
		t.Fatal(err)
	}
	users := asked.Policy.BasicAuth
	if !asked.Ephemeral || len(asked.Policy.Allow) != 1 || asked.Policy.Allow[0] != "203.0.113.0/24" || len(users) != 1 || users[0].Name != shown.User || users[0].Password != "opensesame" {
		t.Errorf("asked for %+v", asked)
	}
	if code := end(); code != command.ExitDone || errs.String() != "" {
		t.Errorf("got exit code %d and %q", code, errs)
	}
}

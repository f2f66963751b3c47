package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"adit/cli/command"
)

// TestShortFormEndsByItself for a second is told when, removes its tunnel and ends well.
func TestShortFormEndsByItself(t *testing.T) {
	for name, c := range map[string]struct {
		args     []string
		terminal bool
		tells    string
	}{
		"lines":    {[]string{"https", "3000", "--for", "1s"}, false, "Ends by itself at "},
		"terminal": {[]string{"https", "3000", "--for", "1s"}, true, "Ends         "},
		"JSON":     {[]string{"https", "3000", "--for", "1s", "--json"}, false, `"ends_at": "`},
		"a folder": {[]string{"files", t.TempDir(), "--for", "1s"}, false, "Ends by itself at "},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDaemon(t)
			d.streamEvents("status " + statusJSON)
			begin := time.Now()
			out, errs, end := startLive(t, c.terminal, c.args...)
			d.waitFor(t, "DELETE /api/v1/tunnels/t_1")
			if took := time.Since(begin); took < time.Second {
				t.Errorf("it ended after %v", took)
			}
			if c.terminal || name == "lines" || name == "a folder" {
				out.waitFor(t, "The time is up. Removed the tunnel.")
			}
			if code := end(); code != command.ExitDone || errs.String() != "" {
				t.Errorf("exit code %d, %s", code, errs)
			}
			if !strings.Contains(out.String(), c.tells) {
				t.Errorf("it tells %s", out)
			}
			if name == "JSON" {
				var told struct {
					EndsAt time.Time `json:"ends_at"`
				}
				if err := json.Unmarshal([]byte(out.String()), &told); err != nil || told.EndsAt.Sub(begin).Round(time.Second) != time.Second {
					t.Errorf("it ends at %v, %v", told.EndsAt, err)
				}
			}
		})
	}
}

func TestForBeyondItsBoundsIsWrongUsage(t *testing.T) {
	newFakeDaemon(t)
	for _, given := range []string{"0s", "-1h", "500ms", "721h"} {
		for _, args := range [][]string{{"http", "3000"}, {"files", t.TempDir()}} {
			code, _, errs := run(t, "", append(args, "--for", given)...)
			if code != command.ExitUsage || !strings.Contains(errs, "--for must be 1s to 720h (30 days)") {
				t.Errorf("%q %s: got exit code %d and %q, want 2 and the bounds", args, given, code, errs)
			}
		}
	}
}

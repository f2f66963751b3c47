package relay

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"adit/internal/require"
)

// TestDashboardAsksForFiguresThatThereAre compares build/relay/grafana.json with the
// figures that a relay reports.
func TestDashboardAsksForFiguresThatThereAre(t *testing.T) {
	text, err := os.ReadFile("../../build/relay/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	s := startSite(t, testConfig(t.TempDir()), nil)
	_, page, _ := s.ask(t, "GET", "/metrics", "", map[string]string{"Authorization": "Bearer " + s.AdminToken()})
	asked := map[string]bool{}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`\b(adit|go)_[a-z_]+`).FindAllString(target.Expr, -1) {
				asked[name] = true
				if !strings.Contains(page, "\n# TYPE "+name+" ") {
					t.Errorf("%s: the relay has no figure %s", panel.Title, name)
				}
			}
		}
	}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (adit_relay_[a-z_]+)`).FindAllStringSubmatch(page, -1) {
		if known := name[1]; !asked[known] && known != "adit_relay_build_info" && known != "adit_relay_claims" && known != "adit_relay_visitor_connections" {
			t.Errorf("the dashboard does not show %s", known)
		}
	}
}

// TestRelayUnitIsUnderstoodAndTight asks systemd what it thinks of
// build/relay/adit-relay.service.
func TestRelayUnitIsUnderstoodAndTight(t *testing.T) {
	analyze := require.Tool(t, "systemd-analyze")
	out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=25", "--no-pager", "../../build/relay/adit-relay.service").CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
	if unknown := regexp.MustCompile(`(?i)unknown (key|lvalue|section).*`).Find(out); unknown != nil {
		t.Errorf("systemd does not know: %s", unknown)
	}
	t.Log(lastLine(string(out)))
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

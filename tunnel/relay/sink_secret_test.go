package relay

import (
	"encoding/json"
	"strings"
	"testing"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
)

// TestAuditLogHasNoKeyOfASink has a receiver that takes its key in the query: the
// audit log, which nobody can delete from and which goes to sinks, must not have it.
func TestAuditLogHasNoKeyOfASink(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	answer[console.Sink](t, r, "PUT", "/api/v1/sinks/siem", `{"type":"webhook","url":"https://siem.example.com/v1/input?api-key=qu3rykey"}`)
	found := false
	err := r.store.Audit.Newest(t.Context(), 0, func(e audit.Entry) bool {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(text), "https://siem.example.com/v1/input")
		if strings.Contains(string(text), "qu3rykey") {
			t.Errorf("the log has %s", text)
		}
		return true
	})
	if err != nil || !found {
		t.Errorf("where the sink leads is not in the log (%v)", err)
	}
}

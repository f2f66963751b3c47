package relay

import (
	"encoding/json"
	"strings"
	"testing"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
)

// TestAuditLogHasNoKeyOfASink uses receivers that have their key in the path or the
// query. The audit log must not contain it, since nobody can delete from that log and it
// is sent to sinks.
func TestAuditLogHasNoKeyOfASink(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	for name, url := range map[string]string{
		"query": "https://siem.example.com/v1/input?api-key=s3cretkey",
		"path":  "https://hooks.example.com/services/s3cretkey",
	} {
		answer[console.Sink](t, r, "PUT", "/api/v1/sinks/"+name, `{"type":"webhook","url":"`+url+`"}`)
	}
	var lines []string
	err := r.store.Audit.Newest(t.Context(), 0, func(e audit.Entry) bool {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(lines, "\n")
	for _, host := range []string{"https://siem.example.com/…", "https://hooks.example.com/…"} {
		if !strings.Contains(all, host) {
			t.Errorf("the log does not have %s", host)
		}
	}
	if strings.Contains(all, "s3cretkey") {
		t.Errorf("the log has the key:\n%s", all)
	}
}

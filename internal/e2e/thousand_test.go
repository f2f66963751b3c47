package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestThousandTunnelsInABrowser has a client make as many tunnels as it may, and
// the page list them while a hundred are stopped and started.
func TestThousandTunnelsInABrowser(t *testing.T) {
	browse := browser(t)
	relay := newRelay(t)
	token := relay.client("laptop")
	must(t, nil, "relay", "client", "set", "laptop", "--tunnels", "1000", "--data_dir", relay.dir)
	agent := newAgent(t)
	agent.configure(token)
	const all = 1000
	begin := time.Now()
	for i := range all {
		agent.ok(http.StatusCreated, "POST", "/api/v1/tunnels", map[string]any{
			"type": "http", "local_port": 3000 + i, "name": fmt.Sprintf("service-%04d", i),
		}, nil)
	}
	t.Logf("%d tunnels were made in %.1f s", all, time.Since(begin).Seconds())
	if got := agent.call("POST", "/api/v1/tunnels", map[string]any{"type": "http", "local_port": 2999}); got.Status != http.StatusBadRequest {
		t.Errorf("tunnel %d got %d: %s, want 400", all+1, got.Status, got.Raw)
	}
	t.Log(browse("e2e:thousand", "ADIT_WEB_UI=http://"+agent.listen))
	t.Logf("the daemon has %d KiB resident", residentBytes(t, agent.proc.cmd.Process.Pid)>>10)
}

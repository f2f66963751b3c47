package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRefusedTokenChangesNothing(t *testing.T) {
	t.Parallel() // most of it is waiting
	relay := newRelay(t)
	other := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("http", newOrigin(t), nil)

	revoked := relay.client("old")
	must(t, nil, "relay", "client", "revoke", "old", "--data_dir", relay.dir)
	good := relay.client("cut")
	foreign := other.client("laptop")
	other.proc.kill()
	cases := []struct {
		name, token, code string
		status            int
	}{
		{"not a token", "hello", "invalid_token", http.StatusBadRequest},
		{"empty", "", "invalid_token", http.StatusBadRequest},
		{"cut short", good[:len(good)-5], "invalid_token", http.StatusBadRequest},
		{"of a revoked client", revoked, "invalid_token", http.StatusBadRequest},
		{"of a relay that is not there", foreign, "relay_unreachable", http.StatusServiceUnavailable},
	}
	for _, c := range cases {
		got := agent.call("POST", "/api/v1/auth/configure", map[string]any{"auth_token": c.token})
		if got.Status != c.status || got.Error.Code != c.code && !(c.token == "" && got.Error.Code == "invalid_parameter") {
			t.Errorf("%s: got %d %s, want %d %s", c.name, got.Status, got.Raw, c.status, c.code)
		}
		if c.token != "" && strings.Contains(got.Raw, c.token) {
			t.Errorf("%s: the answer has the token in it", c.name)
		}
		if s := agent.status(); !s.Configured || s.Relay != relay.tunnel {
			t.Errorf("%s: status is now %+v", c.name, s)
		}
	}
	agent.awaitConnected()
	await(t, "the tunnel answers as before", answers(relay.visitor(), made.PublicURL))
}

func TestRevokedClientIsRejectedAndSaysSo(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	begin := time.Now()
	must(t, nil, "relay", "client", "revoke", "laptop", "--data_dir", relay.dir)
	await(t, "the daemon is rejected", func() error {
		if s := agent.status(); s.Connected || s.State != "rejected" {
			return errorf("status %+v", s)
		}
		return nil
	})
	t.Logf("rejected %v after the command began", time.Since(begin))
	agent.configure(relay.client("again"))
}

func TestRotatedTokenHasTimeToBeReplaced(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	first := relay.client("laptop")
	agent.configure(first)
	var rotated struct {
		AuthToken string `json:"auth_token"`
	}
	decode(t, must(t, nil, "relay", "client", "rotate", "laptop", "--json", "--data_dir", relay.dir), &rotated)
	if rotated.AuthToken == "" || rotated.AuthToken == first {
		t.Fatalf("rotate printed %q", rotated.AuthToken)
	}
	agent.configure(first) // still good
	agent.configure(rotated.AuthToken)
}

func TestNamesAndPortsHaveOneOwner(t *testing.T) {
	relay := newRelay(t)
	one, two := newAgent(t), newAgent(t)
	one.configure(relay.client("one"))
	two.configure(relay.client("two"))
	port := newOrigin(t)
	held := one.publish("https", port, map[string]any{"domain": "taken"})
	raw := one.publish("tcp", port, nil)
	remote := portOf(t, strings.TrimPrefix(raw.PublicURL, "tcp://"))

	for name, body := range map[string]map[string]any{
		"a taken name": {"type": "https", "mode": "standard", "local_port": port, "domain": "taken"},
		"a taken port": {"type": "tcp", "mode": "standard", "local_port": port, "remote_port": remote},
	} {
		got := two.call("POST", "/api/v1/tunnels", body)
		if got.Status != http.StatusBadRequest || got.Error.Code != "relay_rejected" {
			t.Errorf("%s: got %d %s, want 400 relay_rejected", name, got.Status, got.Raw)
		}
	}
	one.ok(http.StatusNoContent, "DELETE", "/api/v1/tunnels/"+held.ID, nil, nil)
	two.publish("https", port, map[string]any{"domain": "taken"})
}

func TestPortInUseIsOneClearSentence(t *testing.T) {
	relay := newRelay(t)
	got := run(t, nil, "relay", "start", "--data_dir", t.TempDir(), "--domain", "localhost", "--tunnel_listen", relay.tunnel,
		"--edge_http_listen", "127.0.0.1:0", "--edge_https_listen", "127.0.0.1:0", "--console_listen", "127.0.0.1:0")
	if got.code != 1 || !strings.Contains(got.stderr, relay.tunnel) || strings.Count(strings.TrimSpace(got.stderr), "\n") != 0 {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	agent := newAgent(t)
	dir := t.TempDir()
	got = run(t, []string{"ADIT_CONFIG_DIR=" + dir, "ADIT_STATE_DIR=" + dir}, "start", "--http_listen", agent.listen)
	if got.code != 1 || !strings.Contains(got.stderr, agent.listen) {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
}

func TestWrongUsageIsExitCodeTwo(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"start", "--nonsense"}, {"http"}, {"http", "seventy"}, {"relay", "client", "add"}} {
		if got := run(t, []string{"ADIT_STATE_DIR=" + t.TempDir()}, args...); got.code != 2 || got.stderr == "" {
			t.Errorf("adit %v: exit code %d, stderr %q", args, got.code, got.stderr)
		}
	}
	dir := t.TempDir()
	if got := run(t, []string{"ADIT_STATE_DIR=" + dir, "ADIT_CONFIG_DIR=" + dir}, "status"); got.code != 1 || got.stderr == "" {
		t.Errorf("adit status without a daemon: exit code %d, stderr %q", got.code, got.stderr)
	}
}

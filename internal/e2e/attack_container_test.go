package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/require"
)

// container is a neighbour of the daemon's host, as a container is: it reaches
// the host by an address that is not loopback.
type container struct {
	*hosts
	curl string
}

// ask has a host ask and returns the status and the answer's body; "000" is
// no answer at all.
func (c *container) ask(host string, args ...string) (status, body string) {
	c.t.Helper()
	args = append([]string{"netns", "exec", c.spaces[host], c.curl, "-sS", "-m", "20", "-w", "\n%{http_code}"}, args...)
	out, _ := exec.Command(c.ip, args...).Output() // no answer is one of the answers
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:], text
}

// everyPath is one of each kind that the daemon serves.
var everyPath = []string{"/", "/healthz", "/metrics", "/api/v1/status", "/api/v1/endpoints", "/api/v1/events", "/api/v1/openapi.yaml", "/nothing"}

// TestContainerDoesNotReachTheDaemon asks from a container's address: by the
// host's own address, and through a host that hands its loopback on.
func TestContainerDoesNotReachTheDaemon(t *testing.T) {
	c := &container{newHosts(t), require.Tool(t, "curl")}
	const host, box = "agent", "router" // 192.168.7.2 and 192.168.7.1
	dir := t.TempDir()
	launchIn(t, c.spaces[host], []string{"ADIT_CONFIG_DIR=" + dir, "ADIT_STATE_DIR=" + dir}, "start")
	await(t, "the daemon answers its own host", func() error {
		if status, body := c.ask(host, "http://127.0.0.1:37271/healthz"); status != "200" {
			return errorf("got %s", body)
		}
		return nil
	})
	if status, body := c.ask(box, "http://192.168.7.2:37271/healthz"); status != "000" {
		t.Errorf("the host's address: got %s, want no connection", body)
	}

	// A container runtime publishes a port of the host's loopback.
	c.in(host, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet")
	c.in(host, c.iptables, "-w", "-t", "nat", "-A", "PREROUTING", "-i", "eth0", "-p", "tcp", "--dport", "37271", "-j", "DNAT", "--to-destination", "127.0.0.1:37271")
	for _, name := range []string{"127.0.0.1:37271", "localhost:37271", "192.168.7.2:37271"} {
		for _, path := range everyPath {
			if status, body := c.ask(box, "-H", "Host: "+name, "http://192.168.7.2:37271"+path); status != "403" {
				t.Errorf("%s as %s: got %s, want 403", path, name, body)
			}
		}
	}
	status, body := c.ask(box, "-H", "Host: 127.0.0.1:37271", "-H", "Content-Type: application/json",
		"-d", `{"local_port":22}`, "http://192.168.7.2:37271/api/v1/tunnels")
	if status != "403" || !strings.Contains(body, `"code":"forbidden_host"`) {
		t.Errorf("a tunnel from a container: got %s, want 403 forbidden_host", body)
	}
	if status, body := c.ask(host, "http://127.0.0.1:37271/api/v1/tunnels"); status != "200" || !strings.Contains(body, `"items":[]`) {
		t.Errorf("plain curl on the host: got %s", body)
	}
}

// TestContainerNeedsTheBearerToken has the daemon listen on all addresses,
// which it does with Bearer protection only.
func TestContainerNeedsTheBearerToken(t *testing.T) {
	c := &container{newHosts(t), require.Tool(t, "curl")}
	const host, box = "agent", "router"
	dir := t.TempDir()
	env := []string{"ADIT_CONFIG_DIR=" + dir, "ADIT_STATE_DIR=" + dir}
	if got := run(t, env, "start", "--http_listen", "0.0.0.0:0"); got.code != 1 || !strings.Contains(got.stderr, "bearer_token") {
		t.Errorf("without a token: exit code %d, %q; want 1 and the setting's name", got.code, got.stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "adit.toml"), []byte("[local_api]\nbearer_token = \""+bearerToken+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	launchIn(t, c.spaces[host], env, "start", "--http_listen", "0.0.0.0:37271")
	await(t, "the daemon answers its own host", func() error {
		if status, body := c.ask(host, "http://127.0.0.1:37271/healthz"); status != "200" {
			return errorf("got %s", body)
		}
		return nil
	})
	const url = "http://192.168.7.2:37271"
	token := "Authorization: Bearer " + bearerToken
	for _, path := range everyPath {
		want := "401"
		switch path {
		case "/healthz", "/", "/nothing": // the probe, and the page that asks for the token
			continue
		}
		for _, as := range []string{"X-Nothing: 1", "Authorization: Bearer wrong", "Authorization: Basic YTpi"} {
			if status, body := c.ask(box, "-H", as, url+path); status != want {
				t.Errorf("%s with %s: got %s, want %s", path, as, body, want)
			}
		}
	}
	if status, body := c.ask(box, "-H", token, url+"/api/v1/status"); status != "200" {
		t.Errorf("with the token: got %s, want 200", body)
	}
	for _, name := range []string{"evil.example", "evil.example:37271", "192.168.7.2.nip.io:37271", "192.168.7.2.:37271", "192.168.7.9:37271"} {
		if status, body := c.ask(box, "-H", token, "-H", "Host: "+name, url+"/api/v1/status"); status != "403" {
			t.Errorf("as %s: got %s, want 403", name, body)
		}
	}
}

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"adit/internal/require"
)

// TestThreeHosts has relay, daemon and visitor on hosts of their own: network
// namespaces on one bridge, the daemon behind a NAT that lets nothing in.
func TestThreeHosts(t *testing.T) {
	h := newHosts(t)
	ip, curl, iptables, spaces, in := h.ip, require.Tool(t, "curl"), h.iptables, h.spaces, h.in

	data, state := t.TempDir(), t.TempDir()
	launchIn(t, spaces["relay"], nil, "relay", "start", "--data_dir", data, "--domain", "tunnels.test", "--public_host", "198.51.100.1",
		"--tunnel_listen", ":4433", "--edge_http_listen", ":80", "--edge_https_listen", ":443", "--console_listen", "127.0.0.1:37280")
	await(t, "the relay answers", func() error {
		return exec.Command(ip, "netns", "exec", spaces["relay"], curl, "-fsS", "http://127.0.0.1:37280/healthz").Run()
	})
	var added struct {
		AuthToken string `json:"auth_token"`
	}
	decode(t, in("relay", program, "relay", "client", "add", "home", "--json", "--data_dir", data), &added)

	env := []string{"ADIT_CONFIG_DIR=" + state, "ADIT_STATE_DIR=" + state}
	launchIn(t, spaces["agent"], env, "start")
	local := func(args ...string) (string, error) {
		out, err := exec.Command(ip, append([]string{"netns", "exec", spaces["agent"], curl, "-sS", "-H", "Content-Type: application/json"}, args...)...).CombinedOutput()
		return string(out), err
	}
	await(t, "the daemon answers", func() error {
		_, err := local("-f", "http://127.0.0.1:37271/healthz")
		return err
	})
	if out, err := local("-f", "-d", fmt.Sprintf(`{"auth_token":%q}`, added.AuthToken), "http://127.0.0.1:37271/api/v1/auth/configure"); err != nil {
		t.Fatalf("configure: %v %s", err, out)
	}
	site := t.TempDir()
	if err := os.WriteFile(site+"/index.html", []byte("hello from behind the NAT"), 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, ip, "netns", "exec", spaces["agent"], require.Tool(t, "python3"), "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", site)
	await(t, "the local service answers", func() error {
		_, err := local("-f", "http://127.0.0.1:8000/")
		return err
	})
	for _, kind := range []string{"http", "https"} {
		out, err := local("-f", "-d", fmt.Sprintf(`{"type":%q,"mode":"standard","local_ip":"127.0.0.1","local_port":8000,"domain":"home-%s"}`, kind, kind), "http://127.0.0.1:37271/api/v1/tunnels")
		if err != nil {
			t.Fatalf("create: %v %s", err, out)
		}
		url := kind + "://home-" + kind + ".tunnels.test"
		if !strings.Contains(out, url) {
			t.Errorf("the tunnel is %s, want a public_url of %s", out, url)
		}
		args := []string{curl, "-sS", "--resolve", "home-" + kind + ".tunnels.test:80:198.51.100.1", "--resolve", "home-" + kind + ".tunnels.test:443:198.51.100.1", "--cacert", data + "/ca.pem", url + "/"}
		await(t, "the visitor is answered", func() error {
			out, err := exec.Command(ip, append([]string{"netns", "exec", spaces["visitor"]}, args...)...).CombinedOutput()
			if err == nil && string(out) != "hello from behind the NAT" {
				err = errorf("%s", out)
			}
			return err
		})
	}
	over := func(transport string) {
		t.Helper()
		await(t, "the daemon is connected over "+transport, func() error {
			out, err := local("-f", "http://127.0.0.1:37271/api/v1/status")
			if err == nil && (!strings.Contains(out, `"transport":"`+transport+`"`) || !strings.Contains(out, `"connected":true`)) {
				err = errorf("status %s", out)
			}
			return err
		})
	}
	over("dtls")

	// A network that lets no UDP out: the daemon goes on over TLS.
	in("router", iptables, "-w", "-I", "FORWARD", "-p", "udp", "-j", "DROP")
	in("router", iptables, "-w", "-I", "FORWARD", "-i", "up0", "-p", "udp", "-j", "DROP")
	over("tls")
	// And back, once the network is better.
	in("router", iptables, "-w", "-D", "FORWARD", "-p", "udp", "-j", "DROP")
	in("router", iptables, "-w", "-D", "FORWARD", "-i", "up0", "-p", "udp", "-j", "DROP")
	over("dtls")

	// One that lets out nothing but the web: the daemon comes by the visitors' port.
	in("router", iptables, "-w", "-I", "FORWARD", "-p", "udp", "-j", "DROP")
	in("router", iptables, "-w", "-I", "FORWARD", "-p", "tcp", "-m", "multiport", "!", "--ports", "80,443", "-j", "DROP")
	over("tls")
	if out := in("agent", "ss", "-Htn", "dst", "198.51.100.1"); !strings.Contains(out, "198.51.100.1:443 ") {
		t.Errorf("the daemon's connections are %s, want one to port 443", out)
	}
	if out, err := local("-f", "-X", "POST", "http://127.0.0.1:37271/api/v1/diagnostics"); err != nil || !strings.Contains(out, ", at port 443 alone") {
		t.Errorf("the diagnosis does not tell of the port: %v %s", err, out)
	}
}

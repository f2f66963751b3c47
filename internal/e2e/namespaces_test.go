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
	require.Root(t)
	ip, curl, iptables := require.Tool(t, "ip"), require.Tool(t, "curl"), require.Tool(t, "iptables")
	tag := fmt.Sprintf("ad%d", os.Getpid()%100000)
	spaces := map[string]string{}
	for _, host := range []string{"relay", "router", "agent", "visitor"} {
		name := tag + host
		if out, err := exec.Command(ip, "netns", "add", name).CombinedOutput(); err != nil {
			require.Missing(t, "network namespaces: %v %s", err, out)
		}
		t.Cleanup(func() { exec.Command(ip, "netns", "del", name).Run() })
		spaces[host] = name
		tool(t, ip, "-n", name, "link", "set", "lo", "up")
	}
	in := func(host string, args ...string) string {
		t.Helper()
		return tool(t, ip, append([]string{"netns", "exec", spaces[host]}, args...)...)
	}
	// The public side is a bridge in the relay's namespace; the daemon's host is behind the router.
	tool(t, ip, "-n", spaces["relay"], "link", "add", "public", "type", "bridge")
	tool(t, ip, "-n", spaces["relay"], "addr", "add", "198.51.100.1/24", "dev", "public")
	tool(t, ip, "-n", spaces["relay"], "link", "set", "public", "up")
	for host, addr := range map[string]string{"router": "198.51.100.2/24", "visitor": "198.51.100.3/24"} {
		tool(t, ip, "-n", spaces["relay"], "link", "add", "to"+host, "type", "veth", "peer", "name", "up0", "netns", spaces[host])
		tool(t, ip, "-n", spaces["relay"], "link", "set", "to"+host, "master", "public", "up")
		tool(t, ip, "-n", spaces[host], "addr", "add", addr, "dev", "up0")
		tool(t, ip, "-n", spaces[host], "link", "set", "up0", "up")
	}
	tool(t, ip, "-n", spaces["router"], "link", "add", "home", "type", "veth", "peer", "name", "eth0", "netns", spaces["agent"])
	tool(t, ip, "-n", spaces["router"], "addr", "add", "192.168.7.1/24", "dev", "home")
	tool(t, ip, "-n", spaces["router"], "link", "set", "home", "up")
	tool(t, ip, "-n", spaces["agent"], "addr", "add", "192.168.7.2/24", "dev", "eth0")
	tool(t, ip, "-n", spaces["agent"], "link", "set", "eth0", "up")
	tool(t, ip, "-n", spaces["agent"], "route", "add", "default", "via", "192.168.7.1")
	in("router", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	in("router", iptables, "-t", "nat", "-A", "POSTROUTING", "-o", "up0", "-j", "MASQUERADE")
	in("router", iptables, "-A", "FORWARD", "-i", "up0", "-m", "conntrack", "!", "--ctstate", "ESTABLISHED,RELATED", "-j", "DROP")

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
	out, err := local("-f", "http://127.0.0.1:37271/api/v1/status")
	if err != nil || !strings.Contains(out, `"transport":"dtls"`) {
		t.Errorf("status %s, %v", out, err)
	}

	// A network that lets no UDP out: the daemon goes on over TLS.
	in("router", iptables, "-I", "FORWARD", "-p", "udp", "-j", "DROP")
	in("router", iptables, "-I", "FORWARD", "-i", "up0", "-p", "udp", "-j", "DROP")
	await(t, "the daemon is connected over tls", func() error {
		out, err := local("-f", "http://127.0.0.1:37271/api/v1/status")
		if err == nil && (!strings.Contains(out, `"transport":"tls"`) || !strings.Contains(out, `"connected":true`)) {
			err = errorf("status %s", out)
		}
		return err
	})
	// And back, once the network is better.
	in("router", iptables, "-D", "FORWARD", "-p", "udp", "-j", "DROP")
	in("router", iptables, "-D", "FORWARD", "-i", "up0", "-p", "udp", "-j", "DROP")
	await(t, "the daemon is back on dtls", func() error {
		out, err := local("-f", "http://127.0.0.1:37271/api/v1/status")
		if err == nil && (!strings.Contains(out, `"transport":"dtls"`) || !strings.Contains(out, `"connected":true`)) {
			err = errorf("status %s", out)
		}
		return err
	})
}

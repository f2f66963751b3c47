package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"adit/internal/require"
)

// hosts are network namespaces on one bridge: relay (198.51.100.1), visitor
// (198.51.100.3), and agent (192.168.7.2) behind a router that does NAT and lets
// nothing in.
type hosts struct {
	t            *testing.T
	ip, iptables string
	spaces       map[string]string // by host
}

// hostsMade tells the namespaces of one test from another's.
var hostsMade atomic.Int64

func newHosts(t *testing.T) *hosts {
	t.Helper()
	require.Root(t)
	ip, iptables := require.Tool(t, "ip"), require.Tool(t, "iptables")
	tag := fmt.Sprintf("ad%d-%d", os.Getpid()%100000, hostsMade.Add(1))
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
	h := &hosts{t: t, ip: ip, iptables: iptables, spaces: spaces}
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
	h.in("router", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	h.in("router", iptables, "-w", "-t", "nat", "-A", "POSTROUTING", "-o", "up0", "-j", "MASQUERADE")
	h.in("router", iptables, "-w", "-A", "FORWARD", "-i", "up0", "-m", "conntrack", "!", "--ctstate", "ESTABLISHED,RELATED", "-j", "DROP")
	return h
}

// in runs a program on a host, which must succeed.
func (h *hosts) in(host string, args ...string) string {
	h.t.Helper()
	return tool(h.t, h.ip, append([]string{"netns", "exec", h.spaces[host]}, args...)...)
}

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/internal/require"
)

// TestChaosOfNetworkAndDisk is TestChaos with the daemon on a host of its own
// that has two uplinks: beside what TestChaos does, the network is cut, blocks
// UDP, changes the daemon's address, and the disk of relay and daemon is full.
func TestChaosOfNetworkAndDisk(t *testing.T) {
	length, seed := chaosOf(t)
	if !unshared(t, "256m") {
		return
	}
	n := newUplinks(t)
	relay := newRelay(t, "--public_host", relayAddr,
		"--tunnel_listen", fmt.Sprintf(":%d", freeport.Get(t)), "--edge_https_listen", fmt.Sprintf(":%d", freeport.Get(t)))
	agent := newAgentIn(t, n.space, clientIn(t, n.space))
	c := newChaosBetween(t, relay, agent, newOriginOn(t, listenIn(t, n.space)), newEchoOn(t, listenIn(t, n.space)))
	c.run(length, seed, append(c.faults(), n.faults()...))
}

const relayAddr = "10.78.0.1"

// uplinks is the daemon's host with two ways to the relay, one of them in use.
type uplinks struct {
	t        *testing.T
	ip       string
	iptables string
	space    string
	used     int
}

func newUplinks(t *testing.T) *uplinks {
	t.Helper()
	n := &uplinks{t: t, ip: require.Tool(t, "ip"), iptables: require.Tool(t, "iptables"), space: fmt.Sprintf("adup%d", os.Getpid())}
	if out, err := exec.Command(n.ip, "netns", "add", n.space).CombinedOutput(); err != nil {
		require.Missing(t, "network namespaces: %v %s", err, out)
	}
	t.Cleanup(func() { exec.Command(n.ip, "netns", "del", n.space).Run() })
	tool(t, n.ip, "addr", "add", relayAddr+"/32", "dev", "lo")
	n.inside("link", "set", "lo", "up")
	for i := range 2 {
		here, there := fmt.Sprintf("down%d", i), fmt.Sprintf("up%d", i)
		tool(t, n.ip, "link", "add", here, "type", "veth", "peer", "name", there, "netns", n.space)
		tool(t, n.ip, "addr", "add", fmt.Sprintf("10.78.%d.1/24", i+1), "dev", here)
		tool(t, n.ip, "link", "set", here, "up")
		n.inside("link", "set", there, "up")
	}
	n.use(0)
	return n
}

func (n *uplinks) inside(args ...string) {
	n.t.Helper()
	tool(n.t, n.ip, append([]string{"-n", n.space}, args...)...)
}

// use gives the host the address of one uplink and takes that of the other away.
func (n *uplinks) use(i int) {
	n.t.Helper()
	n.inside("addr", "flush", "dev", fmt.Sprintf("up%d", 1-i))
	n.inside("addr", "replace", fmt.Sprintf("10.78.%d.2/24", i+1), "dev", fmt.Sprintf("up%d", i))
	n.inside("route", "replace", "default", "via", fmt.Sprintf("10.78.%d.1", i+1))
	n.used = i
}

func (n *uplinks) faults() []fault {
	return []fault{
		{"network cut", func(length time.Duration) { n.drop(length, "all") }},
		{"UDP blocked", func(length time.Duration) { n.drop(2*length, "udp") }},
		{"TCP blocked", func(length time.Duration) { n.drop(length, "tcp") }},
		{"address changed", func(time.Duration) { n.use(1 - n.used) }},
		{"disk full", func(length time.Duration) { fillDisk(n.t, length) }},
	}
}

// drop loses every packet of a protocol on the uplinks for a while.
func (n *uplinks) drop(length time.Duration, protocol string) {
	n.t.Helper()
	rule := func(does string) {
		n.t.Helper()
		for _, way := range [][]string{{"INPUT", "-i"}, {"OUTPUT", "-o"}} {
			tool(n.t, n.ip, "netns", "exec", n.space, n.iptables, "-w", does, way[0], way[1], "up+", "-p", protocol, "-j", "DROP")
		}
	}
	rule("-I")
	<-time.After(length)
	rule("-D")
}

// fillDisk takes all room of the disk with the temporary files for a while.
func fillDisk(t *testing.T, length time.Duration) {
	t.Helper()
	fillDiskAt(t, filepath.Join(os.TempDir(), "filling"), length)
}

// fillDiskAt takes all room of the disk that a file is on for a while.
func fillDiskAt(t *testing.T, path string, length time.Duration) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	defer file.Close()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		if _, err = file.Write(chunk); err != nil {
			chunk = chunk[:len(chunk)/2] // down to the last byte
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	<-time.After(length)
}

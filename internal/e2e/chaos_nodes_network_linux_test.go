package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// TestChaosOfNodesAndNetwork is TestChaosOfNodes with networks that are cut: a
// NATS server from all others, nodes from NATS, nodes from each other, and both;
// and with the disk of one NATS server full.
func TestChaosOfNodesAndNetwork(t *testing.T) {
	length, seed := chaosOf(t)
	if !unshared(t, "512m") {
		return
	}
	nats := prepareNATS(t, 3)
	for i, s := range nats {
		s.gid = firstGroup + i
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+natsDisk, "tmpfs", s.dir).CombinedOutput(); err != nil {
			require.Missing(t, "a disk for a NATS server: %v %s", err, out)
		}
		t.Cleanup(func() { exec.Command("umount", "-l", s.dir).Run() }) // before the folder is removed
	}
	w := &wires{t: t, iptables: require.Tool(t, "iptables")}
	c := newNodesChaos(t, nats)
	c.run(length, seed, spare(append(w.faults(c, seed), c.faults(seed)...)))
}

// natsDisk is the disk of a NATS server. An hour of access events takes 40 MB of
// it, and the logs of what the servers agree on some more.
const natsDisk = "192m"

// firstGroup is the group of the first NATS server; the others and the nodes have
// the following. Filters tell the processes by it, since all are on loopback.
const firstGroup = 61200

type wires struct {
	t        *testing.T
	iptables string
}

// cut drops what rules say for a while: each is of what a process sends, so that
// it is deaf, too, to all that asks for an answer.
func (w *wires) cut(length time.Duration, rules ...string) {
	w.t.Helper()
	does := func(how string) {
		w.t.Helper()
		for _, rule := range rules {
			tool(w.t, w.iptables, append([]string{"-w", how, "OUTPUT", "-p", "tcp", "-j", "DROP"}, strings.Fields(rule)...)...)
		}
	}
	does("-I")
	<-time.After(length)
	does("-D")
}

func (w *wires) faults(c *nodesChaos, seed uint64) []fault {
	random := rand.New(rand.NewPCG(seed, 13))
	one := func() int { return random.IntN(3) }
	group := func(gid int) string { return fmt.Sprintf("-m owner --gid-owner %d", gid) }
	var clients []string
	for _, s := range c.nats {
		clients = append(clients, s.url[strings.LastIndex(s.url, ":")+1:])
	}
	toNATS := func(r *relay) string {
		return group(r.gid) + " -m multiport --dports " + strings.Join(clients, ",")
	}
	toNodes := func(r *relay) []string {
		return []string{fmt.Sprintf("%s --dport %d", group(r.gid), r.peers), fmt.Sprintf("%s --sport %d", group(r.gid), r.peers)}
	}
	return []fault{
		{"NATS server cut off", func(length time.Duration) { w.cut(3*length, group(c.nats[one()].gid)) }},
		{"NATS servers cut from each other", func(length time.Duration) {
			spared := one()
			w.cut(2*length, group(c.nats[(spared+1)%3].gid), group(c.nats[(spared+2)%3].gid))
		}},
		{"node cut from NATS", func(length time.Duration) { w.cut(3*length, toNATS(c.nodes[one()])) }},
		{"node cut from nodes", func(length time.Duration) { w.cut(3*length, toNodes(c.nodes[one()])...) }},
		{"node cut from NATS and nodes", func(length time.Duration) {
			r := c.nodes[one()]
			w.cut(3*length, append(toNodes(r), toNATS(r))...)
		}},
		{"node cut from NATS and nodes past its lease", func(length time.Duration) {
			r := c.nodes[one()]
			w.cut(16*time.Second+length, append(toNodes(r), toNATS(r))...)
		}},
		{"disk of a NATS server full", func(length time.Duration) {
			s := c.nats[one()]
			path := filepath.Join(s.dir, "filling")
			fillDiskAt(w.t, path, 4*length)
			// A server that had no room keeps JetStream off until it is restarted.
			s.kill()
			s.start()
			s.awaitUp()
		}},
	}
}

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestIdleDaemonSleeps counts how often the threads of idle daemons get up: of
// one that has no token nearly never, of one with a session for its keep-alives.
// A machine with other work to do adds to that now and then, but a ticker adds
// to it always: so it is the quietest of several spells that counts.
func TestIdleDaemonSleeps(t *testing.T) {
	alone := newAgent(t)
	connected := newAgent(t)
	connected.configure(newRelay(t).client("laptop"))
	connected.awaitDTLS()
	const (
		spell  = 11 * time.Second
		spells = 4
		// One turn of a goroutine wakes several threads, so a ticker of one
		// second showed as 100 and more in a spell. Without a session only the
		// runtime's own housekeeping is left.
		most = 40
		// A keep-alive and its answers are three wake-ups within two seconds,
		// each of which makes the scheduler's monitor look around for a while:
		// some 75 in all. The interval is longer than a spell once it is learned,
		// so among the spells is one with a single exchange.
		mostConnected = most + 140
	)
	type daemon struct {
		name  string
		agent *agent
		most  int
		least int
		seen  []int
	}
	daemons := []*daemon{{name: "without a token", agent: alone, most: most}, {name: "connected", agent: connected, most: mostConnected}}
	quiet := false
	for range spells {
		if quiet {
			break
		}
		before := make([]map[string]int, len(daemons))
		for i, d := range daemons {
			before[i] = switches(t, d.agent.proc.cmd.Process.Pid)
		}
		time.Sleep(spell) // what is measured, not a wait
		quiet = true
		for i, d := range daemons {
			woken := 0
			for thread, n := range switches(t, d.agent.proc.cmd.Process.Pid) {
				woken += n - before[i][thread]
			}
			d.seen = append(d.seen, woken)
			if len(d.seen) == 1 || woken < d.least {
				d.least = woken
			}
			quiet = quiet && d.least <= d.most
		}
	}
	for _, d := range daemons {
		t.Logf("a daemon %s got up %v times in spells of %v", d.name, d.seen, spell)
		if d.least > d.most {
			t.Errorf("a daemon %s got up %d times in %v, want at most %d", d.name, d.least, spell, d.most)
		}
	}
	connected.awaitConnected()
}

// switches says for each thread of a process how often it has gone to sleep.
func switches(t *testing.T, pid int) map[string]int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no threads of process %d: %v", pid, err)
	}
	counts := make(map[string]int)
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended since
		}
		for line := range strings.Lines(string(text)) {
			if count, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				if counts[path], err = strconv.Atoi(strings.TrimSpace(count)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return counts
}

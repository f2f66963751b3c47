package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// switches is how often the process's threads have gone to sleep by themselves
// so far, which is how often they have been woken.
func (p *process) switches() int64 {
	tasks := fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid)
	list, err := os.ReadDir(tasks)
	if err != nil {
		return 0
	}
	var total int64
	for _, task := range list {
		text, err := os.ReadFile(tasks + "/" + task.Name() + "/status")
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "voluntary_ctxt_switches:"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
				total += n
			}
		}
	}
	return total
}

// measureRest counts what relay and agent do while nobody asks for anything.
func measureRest(ctx context.Context, t *table, column string, lab *lab, each time.Duration) error {
	lab.settle()
	wait := max(each, 5*time.Second)
	var woken [2]int64
	var used [2]time.Duration
	both := []*process{lab.relay, lab.agent}
	for i, p := range both {
		woken[i], used[i] = -p.switches(), -p.cpu()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}
	for i, name := range []string{"relay", "agent"} {
		woken[i] += both[i].switches()
		used[i] += both[i].cpu()
		t.add("at rest, "+name+" is woken", "1/s", column, float64(woken[i])/wait.Seconds())
		t.add("at rest, memory of "+name, "MB", column, float64(both[i].memory())/1e6)
		t.add("at rest, CPU of "+name, "µs/s", column, float64(used[i].Microseconds())/wait.Seconds())
	}
	return nil
}

// measureAPI asks the daemon's local API with ten tunnels there.
func measureAPI(ctx context.Context, t *table, column string, lab *lab, each time.Duration) error {
	for _, what := range []string{"status", "endpoints"} {
		lab.settle()
		before := lab.agent.cpu()
		times, _, err := requests(ctx, load{addr: lab.local, host: lab.local, path: "/api/v1/" + what, n: 16, each: each})
		if err != nil {
			return fmt.Errorf("local API %s: %w", what, err)
		}
		t.add("local API "+what, "req/s", column, float64(len(times))/each.Seconds())
		t.add("local API "+what+", p99", "ms", column, quantile(times, 0.99))
		t.add("local API "+what+", CPU", "µs/req", column, float64((lab.agent.cpu()-before).Microseconds())/float64(len(times)))
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"adit/internal/bench/fleet"
	"adit/tunnel/link"
)

// fleetEnv is set where this program runs once more as many agents; its value is
// a fleet.Fleet.
const fleetEnv = "ADIT_BENCH_FLEET"

// fleetHere is the agents if this process was started for them, and returns at
// once if not.
func fleetHere() {
	text := os.Getenv(fleetEnv)
	if text == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // which ends with the benchmark
		stop()
	}()
	var f fleet.Fleet
	err := json.Unmarshal([]byte(text), &f)
	if err == nil {
		out := json.NewEncoder(os.Stdout)
		f.Count = func(c fleet.Count) { out.Encode(c) }
		err = f.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: fleet:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// agentsOfOneClient is how many agents of the fleet have the same token.
const agentsOfOneClient = 100

// fleetWait is how long a fleet has to be as it should be.
const fleetWait = 5 * time.Minute

// measureFleet measures a relay with many agents, of which each has an http
// tunnel: what each takes, and how soon all are back after the relay was killed.
func measureFleet(ctx context.Context, t *table, column, dir string, o *origin, opts options) error {
	lab, err := startLab(ctx, setup{program: opts.program, dir: dir, transport: column})
	if err != nil {
		return err
	}
	defer lab.close()
	if err := lab.restart(ctx); err != nil { // of the relay, which has added no client then
		return err
	}
	if err := rest(ctx); err != nil {
		return err
	}
	n := float64(opts.agents)
	memory, used, begun := lab.relay.memory(), lab.relay.cpu(), time.Now()
	agents, err := lab.startFleet(ctx, opts.agents, o)
	if err != nil {
		return err
	}
	defer agents.end()
	if err := agents.await(ctx, opts.agents); err != nil {
		return err
	}
	t.add("all connected for the first time", "s", column, time.Since(begun).Seconds())
	t.add("CPU of relay for that", "ms each", column, float64((lab.relay.cpu()-used).Microseconds())/1e3/n)
	if err := rest(ctx); err != nil {
		return err
	}
	t.add("memory of each, relay", "kB", column, float64(lab.relay.memory()-memory)/1e3/n)
	t.add("memory of each, agents", "kB", column, float64(agents.memory())/1e3/n)
	used, begun = lab.relay.cpu(), time.Now()
	if err := rest(ctx); err != nil {
		return err
	}
	t.add("CPU of relay at rest", "%", column, 100*(lab.relay.cpu()-used).Seconds()/time.Since(begun).Seconds())
	lab.relay.end()
	if err := agents.awaitNone(ctx); err != nil {
		return err
	}
	if err := lab.startRelay(ctx); err != nil {
		return err
	}
	begun = time.Now()
	for _, part := range []int{50, 90, 99, 100} {
		if err := agents.await(ctx, opts.agents*part/100); err != nil {
			return err
		}
		t.add(fmt.Sprintf("%d %% back after the relay was killed", part), "s", column, time.Since(begun).Seconds())
	}
	t.add("CPU of relay for the return of all", "ms each", column, float64(lab.relay.cpu().Microseconds())/1e3/n)
	if err := rest(ctx); err != nil {
		return err
	}
	// None of them has noticed anything, but over TLS: the relay's word counts, not theirs.
	lab.relay.end()
	if err := lab.startRelay(ctx); err != nil {
		return err
	}
	begun = time.Now()
	for _, part := range []int{50, 100} {
		if err := pollFor(ctx, fleetWait, func() error { return lab.served(ctx, opts.agents*part/100) }); err != nil {
			return err
		}
		t.add(fmt.Sprintf("%d %% back after a return at once", part), "s", column, time.Since(begun).Seconds())
	}
	return nil
}

// served is an error unless the relay serves so many endpoints.
func (l *lab) served(ctx context.Context, n int) error {
	out, err := exec.CommandContext(ctx, l.program, "relay", "status", "--json", "--data_dir", l.relayData()).Output()
	if err != nil {
		return fmt.Errorf("ask the relay: %w", err)
	}
	var status struct {
		Endpoints int `json:"endpoint_count"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return err
	}
	if status.Endpoints < n {
		return fmt.Errorf("%d of %d endpoints are served", status.Endpoints, n)
	}
	return nil
}

// manyAgents is a fleet as a process of its own.
type manyAgents struct {
	process
	counts chan fleet.Count // closed when the process has ended
	last   fleet.Count
}

// startFleet starts agents of clients of the relay's.
func (l *lab) startFleet(ctx context.Context, n int, o *origin) (*manyAgents, error) {
	port, err := portOf(o.httpAddr)
	if err != nil {
		return nil, err
	}
	f := fleet.Fleet{Dir: filepath.Join(l.dir, "fleet"), Agents: n, Transport: link.Transport(l.transport), Port: port}
	for i := 0; i < n; i += agentsOfOneClient {
		token, err := l.addClient(ctx, fmt.Sprint("fleet", i/agentsOfOneClient))
		if err != nil {
			return nil, err
		}
		f.Tokens = append(f.Tokens, token)
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &manyAgents{process: process{cmd: exec.CommandContext(ctx, self)}, counts: make(chan fleet.Count)}
	m.cmd.Env = append(os.Environ(), fleetEnv+"="+string(text))
	m.cmd.Stderr = &m.log
	if _, err = m.cmd.StdinPipe(); err != nil { // it ends with this process
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(m.counts)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var c fleet.Count
			if json.Unmarshal(lines.Bytes(), &c) != nil {
				return
			}
			select {
			case m.counts <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	return m, nil
}

// await waits until so many agents are connected and serve their endpoints.
func (m *manyAgents) await(ctx context.Context, n int) error {
	return m.until(ctx, func(c fleet.Count) bool { return c.Connected >= n && c.Running >= n })
}

// awaitNone waits until every agent knows that it is not connected.
func (m *manyAgents) awaitNone(ctx context.Context) error {
	return m.until(ctx, func(c fleet.Count) bool { return c.Connected == 0 })
}

func (m *manyAgents) until(ctx context.Context, reached func(fleet.Count) bool) error {
	late := time.NewTimer(fleetWait)
	defer late.Stop()
	for !reached(m.last) {
		select {
		case c, ok := <-m.counts:
			if !ok {
				return errors.New("the agents ended: " + strings.TrimSpace(m.log.String()))
			}
			m.last = c
		case <-late.C:
			return fmt.Errorf("after %v, %d agents are connected and %d endpoints run", fleetWait, m.last.Connected, m.last.Running)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

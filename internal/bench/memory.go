package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

const (
	idleVisitors = 1000
	idleAgents   = 40
	endpoints    = 1000
)

// measureIdleVisitors holds connections through a tcp and an http tunnel, each
// with processes that have done nothing before.
func measureIdleVisitors(ctx context.Context, t *table, column string, f face, lab *lab) error {
	for _, through := range []struct{ name, addr, host string }{{"tcp", f.tcp, ""}, {"http", f.http, f.host}} {
		if err := lab.restart(ctx); err != nil {
			return err
		}
		if err := lab.awaitRunning(ctx, published); err != nil {
			return err
		}
		if err := rest(ctx); err != nil {
			return err
		}
		relay, agent := lab.relay.memory(), lab.agent.memory()
		var conns []*visitor
		var err error
		for len(conns) < idleVisitors && err == nil {
			var v *visitor
			if v, err = dialVisitor(ctx, through.addr, requestFor("/small", through.host, false)); err == nil {
				conns = append(conns, v)
				err = v.ask()
			}
		}
		relay, agent = lab.relay.memory()-relay, lab.agent.memory()-agent
		for _, v := range conns {
			v.conn.Close()
		}
		if err != nil {
			return err
		}
		name := "memory of an idle " + through.name + " visitor, "
		t.add(name+"relay and agent", "kB", column, float64(relay+agent)/1e3/idleVisitors)
		t.add(name+"relay", "kB", column, float64(relay)/1e3/idleVisitors)
		t.add(name+"agent", "kB", column, float64(agent)/1e3/idleVisitors)
		lab.settle()
	}
	return nil
}

// measureHolding measures what idle agents and endpoints take. Memory grows by
// what a process has done before, too, so both processes are started anew for
// each of these, and measured when they have given back what the start took.
func measureHolding(ctx context.Context, t *table, column, dir string, o *origin, opts options) error {
	lab, err := startLab(ctx, setup{program: opts.program, dir: filepath.Join(dir, "holding"), transport: column})
	if err != nil {
		return err
	}
	defer lab.close()
	if err := lab.restart(ctx); err != nil {
		return err
	}
	if err := rest(ctx); err != nil {
		return err
	}
	relay, agent := lab.relay.memory(), lab.agent.memory()

	var agents []*process
	defer func() {
		for _, p := range agents {
			p.end()
		}
	}()
	var locals []string
	for i := range idleAgents {
		p, local, err := lab.oneMoreAgent(fmt.Sprint("agent", i))
		if err != nil {
			return err
		}
		agents, locals = append(agents, p), append(locals, local)
	}
	for range 2 { // with the relay that saw them come first, and with one that found them all
		for _, local := range locals {
			if err := lab.awaitConnected(ctx, local); err != nil {
				return fmt.Errorf("an idle agent: %w", err)
			}
		}
		lab.relay.end()
		if err := lab.startRelay(ctx); err != nil {
			return err
		}
	}
	for _, local := range append(locals, lab.local) {
		if err := lab.awaitConnected(ctx, local); err != nil {
			return fmt.Errorf("an idle agent: %w", err)
		}
	}
	if err := rest(ctx); err != nil {
		return err
	}
	t.add("memory of an idle agent, relay", "kB", column, float64(lab.relay.memory()-relay)/1e3/idleAgents)
	var all int64
	for _, p := range agents {
		all += p.memory()
		p.end()
	}
	agents = nil
	t.add("memory of an idle agent, agent", "kB", column, float64(all)/1e3/idleAgents)

	begun := time.Now()
	for range endpoints {
		if _, err := lab.tunnel("http", o.httpAddr, false); err != nil {
			return err
		}
	}
	t.add("1,000 endpoints made", "s", column, time.Since(begun).Seconds())
	begun = time.Now()
	if err := lab.restart(ctx); err != nil {
		return err
	}
	if err := lab.awaitRunning(ctx, endpoints); err != nil {
		return err
	}
	t.add("1,000 endpoints back after a restart of both", "s", column, time.Since(begun).Seconds())
	if err := rest(ctx); err != nil {
		return err
	}
	t.add("memory of 1,000 endpoints, relay", "MB", column, float64(lab.relay.memory()-relay)/1e6)
	t.add("memory of 1,000 endpoints, agent", "MB", column, float64(lab.agent.memory()-agent)/1e6)
	return nil
}

func rest(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(restAfter):
		return nil
	}
}

// awaitRunning waits until so many tunnels run.
func (l *lab) awaitRunning(ctx context.Context, n int) error {
	return poll(ctx, func() error {
		var list struct{ Items []struct{ State string } }
		if err := l.call("GET", "/api/v1/endpoints", nil, &list); err != nil {
			return err
		}
		running := 0
		for _, e := range list.Items {
			if e.State == "running" {
				running++
			}
		}
		if running < n {
			return errors.New(fmt.Sprint(running, " of ", n, " endpoints run"))
		}
		return nil
	})
}

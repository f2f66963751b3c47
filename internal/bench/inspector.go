package main

import (
	"context"
	"fmt"
	"time"
)

// measureInspector compares an http tunnel that the agent looks into with one
// that it does not, in one run: they take turns, so that what else the machine
// does weighs on both. The figures are medians over the turns, of CPU
// time, and of the ratio between a turn and its neighbour.
func measureInspector(ctx context.Context, t *table, column string, l *lab, o *origin, each time.Duration) error {
	var hosts [2]string
	for i := range hosts {
		made, err := l.tunnel("http", o.httpAddr, i == 1)
		if err != nil {
			return err
		}
		hosts[i] = made
	}
	each = max(each/6, 200*time.Millisecond)
	kinds := []struct {
		name, unit string
		scale      float64
		run        func(host string, begin func()) (float64, error)
	}{
		{"http 1 KiB x64", "µs/req", 1e3, func(host string, begin func()) (float64, error) {
			times, _, err := requests(ctx, load{addr: l.http, host: host, path: "/kib", n: 64, each: each, begin: begin})
			return float64(len(times)), err
		}},
		{"http 256 KiB x1", "ns/B", 1, func(host string, begin func()) (float64, error) {
			begin()
			n, err := download(ctx, l.http, host, 256<<10, each)
			return float64(n), err
		}},
		{"http bulk x1", "ns/B", 1, func(host string, begin func()) (float64, error) {
			begin()
			n, err := download(ctx, l.http, host, 64<<20, each)
			return float64(n), err
		}},
	}
	for _, kind := range kinds {
		all, err := alternate([2]*lab{l, l}, func(i int, begin func()) (float64, time.Duration, error) {
			amount, err := kind.run(hosts[i], begin)
			return amount, 0, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		name := "inspector, " + kind.name
		t.add(name+", agent without", kind.unit, column, medianOf(all[0], turn.agentCost)/kind.scale)
		t.add(name+", agent with", kind.unit, column, medianOf(all[1], turn.agentCost)/kind.scale)
		t.add(name+", agent's CPU more", "%", column, 100*(ratioOf(all, turn.agentCost)-1))
		t.add(name+", CPU of relay and agent more", "%", column, 100*(ratioOf(all, turn.cost)-1))
		t.add(name+", throughput less", "%", column, 100*(1-ratioOf(all, turn.rate)))
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// measureInspector compares an http tunnel that the agent looks into with one
// that it does not, in one run: they take turns, so that what else the machine
// does weighs on both. The figures are medians over the turns, of CPU
// time, and of the ratio between a turn and its neighbour.
func measureInspector(ctx context.Context, t *table, column string, lab *lab, o *origin, each time.Duration) error {
	var hosts [2]string
	for i := range hosts {
		made, err := lab.tunnel("http", o.httpAddr, i == 1)
		if err != nil {
			return err
		}
		hosts[i] = made
	}
	const turns = 12
	turn := max(each/6, 200*time.Millisecond)
	kinds := []struct {
		name, unit string
		scale      float64
		run        func(host string) (float64, error)
	}{
		{"http 1 KiB x64", "µs/req", 1e3, func(host string) (float64, error) {
			times, err := requests(ctx, lab.http, "/kib", host, 64, turn, false)
			return float64(len(times)), err
		}},
		{"http 256 KiB x1", "ns/B", 1, func(host string) (float64, error) {
			n, err := download(ctx, lab.http, host, 256<<10, turn)
			return float64(n), err
		}},
		{"http bulk x1", "ns/B", 1, func(host string) (float64, error) {
			n, err := download(ctx, lab.http, host, 64<<20, turn)
			return float64(n), err
		}},
	}
	for _, kind := range kinds {
		var cost, rate [2][]float64
		var costRatio, wholeRatio, rateRatio []float64
		for n := range turns + 1 {
			var c, whole, r [2]float64
			for k := range 2 {
				i := (k + n) % 2 // who is first changes too
				lab.settle()
				before, beforeAll, began := lab.agent.cpu(), lab.cpu(), time.Now()
				amount, err := kind.run(hosts[i])
				if err != nil {
					return fmt.Errorf("%s: %w", kind.name, err)
				}
				r[i] = amount / time.Since(began).Seconds()
				time.Sleep(20 * time.Millisecond) // the inspector lists a little later
				c[i] = float64(lab.agent.cpu()-before) / amount
				whole[i] = float64(lab.cpu()-beforeAll) / amount
			}
			if n == 0 {
				continue // to warm up
			}
			for i := range 2 {
				cost[i], rate[i] = append(cost[i], c[i]/kind.scale), append(rate[i], r[i])
			}
			costRatio, wholeRatio, rateRatio = append(costRatio, c[1]/c[0]), append(wholeRatio, whole[1]/whole[0]), append(rateRatio, r[1]/r[0])
		}
		t.add("inspector, "+kind.name+", agent without", kind.unit, column, median(cost[0]))
		t.add("inspector, "+kind.name+", agent with", kind.unit, column, median(cost[1]))
		t.add("inspector, "+kind.name+", agent's CPU more", "%", column, 100*(median(costRatio)-1))
		t.add("inspector, "+kind.name+", CPU of relay and agent more", "%", column, 100*(median(wholeRatio)-1))
		t.add("inspector, "+kind.name+", throughput less", "%", column, 100*(1-median(rateRatio)))
	}
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

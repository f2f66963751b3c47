package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// turns is how often two things that are compared take turns, so that what else
// the machine does weighs on both.
const turns = 12

// turn is what one turn took.
type turn struct {
	amount, seconds float64 // requests or bytes
	relay, agent    float64 // CPU, in nanoseconds
	switches        float64 // of both
}

func (t turn) rate() float64       { return t.amount / t.seconds }
func (t turn) cost() float64       { return (t.relay + t.agent) / t.amount }
func (t turn) agentCost() float64  { return t.agent / t.amount }
func (t turn) switchCost() float64 { return t.switches / t.amount }

// turnFunc is one turn of the first or the second. It counts from when begin is
// called, for as long as took says; if zero, until it returns.
type turnFunc func(i int, begin func()) (amount float64, took time.Duration, err error)

// alternate runs two things in turns. Who is first changes, and the first turns
// are to warm up.
func alternate(labs [2]*lab, run turnFunc) (all [2][]turn, err error) {
	for n := range turns + 1 {
		for k := range 2 {
			i := (k + n) % 2
			l := labs[i]
			l.settle()
			var t turn
			var began time.Time
			begin := func() {
				t.relay, t.agent, t.switches = -float64(l.relay.cpu()), -float64(l.agent.cpu()), -float64(l.relay.switches()+l.agent.switches())
				began = time.Now()
			}
			var took time.Duration
			if t.amount, took, err = run(i, begin); err != nil {
				return all, err
			}
			if took == 0 {
				took = time.Since(began)
			}
			t.seconds = took.Seconds()
			time.Sleep(20 * time.Millisecond) // what is done later is of this turn
			t.relay += float64(l.relay.cpu())
			t.agent += float64(l.agent.cpu())
			t.switches += float64(l.relay.switches() + l.agent.switches())
			if n > 0 {
				all[i] = append(all[i], t)
			}
		}
	}
	return all, nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// medianOf is the median of a figure over turns.
func medianOf(list []turn, figure func(turn) float64) float64 {
	v := make([]float64, len(list))
	for i, t := range list {
		v[i] = figure(t)
	}
	return median(v)
}

// ratioOf is the median of the ratio of a figure between the second's turns and
// the first's beside them.
func ratioOf(all [2][]turn, figure func(turn) float64) float64 {
	v := make([]float64, len(all[0]))
	for i := range v {
		v[i] = figure(all[1][i]) / figure(all[0][i])
	}
	return median(v)
}

// twoLabs starts two that differ in how they are set up, with the same tunnels.
func twoLabs(ctx context.Context, dir string, o *origin, setups [2]setup) (labs [2]*lab, faces [2]face, end func(), err error) {
	end = func() { closeAll(labs) }
	for i := range labs {
		setups[i].dir, setups[i].firstPort = filepath.Join(dir, fmt.Sprint(i)), 20100+100*i
		if labs[i], err = startLab(ctx, setups[i]); err != nil {
			break
		}
		if faces[i], err = labs[i].publish(o); err != nil {
			break
		}
	}
	if err != nil {
		end()
	}
	return labs, faces, end, err
}

func closeAll(labs [2]*lab) {
	for _, l := range labs {
		if l != nil {
			l.close()
		}
	}
}

// kind is a load that differs from others by what a request or a byte costs.
type kind struct {
	name  string
	tcp   bool
	n     int
	fresh bool
}

var (
	smallRequests = []kind{
		{"tcp requests x1", true, 1, false},
		{"tcp requests x64", true, 64, false},
		{"tcp new connections", true, 16, true},
		{"http requests x1", false, 1, false},
		{"http requests x64", false, 64, false},
		{"http new connections", false, 16, true},
	}
	bulks = []kind{
		{name: "tcp down x1", n: 1},
		{name: "tcp up x1", n: 1},
		{name: "tcp down x8", n: 8},
	}
)

// pairOf is two labs that take turns, and what their figures are called.
type pairOf struct {
	title, column string
	names         [2]string
	labs          [2]*lab
	faces         [2]face
	opts          options
}

// turn is how long one turn lasts.
func (p *pairOf) turn() time.Duration { return max(p.opts.each/6, 200*time.Millisecond) }

// requests measures small requests.
func (p *pairOf) requests(ctx context.Context, t *table) error {
	for _, kind := range smallRequests {
		if !p.opts.wants(p.title + ", " + kind.name) {
			continue
		}
		err := p.compare(t, kind.name, "1/s", 1, "µs each", 1e3, func(i int, begin func()) (float64, time.Duration, error) {
			l := load{
				addr: p.faces[i].http, host: p.faces[i].host, path: "/small", n: kind.n, fresh: kind.fresh,
				each: p.turn(), begin: begin,
			}
			if kind.tcp {
				l.addr, l.host = p.faces[i].tcp, ""
			}
			times, took, err := requests(ctx, l)
			return float64(len(times)), took, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bulk measures bytes without end.
func (p *pairOf) bulk(ctx context.Context, t *table) error {
	for _, kind := range bulks {
		if p.faces[0].noBulk || !p.opts.wants(p.title+", "+kind.name) {
			continue
		}
		err := p.compare(t, kind.name, "MB/s", 1e6, "ns/B", 1, func(i int, begin func()) (float64, time.Duration, error) {
			begin()
			bytes, took, err := bulk(ctx, bulkLoad{face: p.faces[i], up: kind.name == "tcp up x1", n: kind.n, each: p.turn()})
			return float64(bytes), took, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// datagrams measures as many datagrams to an echo and back as go.
func (p *pairOf) datagrams(ctx context.Context, t *table) error {
	if !p.opts.wants(p.title + ", udp at most") {
		return nil
	}
	return p.compare(t, "udp at most", "1/s", 1, "µs each", 1e3, func(i int, begin func()) (float64, time.Duration, error) {
		begin()
		_, came, _, err := datagrams(ctx, p.faces[i].udp, 0, p.turn())
		return float64(came), p.turn(), err // and not until those came that are lost
	})
}

// compare has both do a thing in turns. Amounts are divided by many in what is
// called a rate, and nanoseconds by span in what is called a cost.
func (p *pairOf) compare(t *table, name, rate string, many float64, cost string, span float64, run turnFunc) error {
	all, err := alternate(p.labs, run)
	name = p.title + ", " + name
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i := range 2 {
		t.add(name+", "+p.names[i], rate, p.column, medianOf(all[i], turn.rate)/many)
		t.add(name+", CPU "+p.names[i], cost, p.column, medianOf(all[i], turn.cost)/span)
		t.add(name+", context switches "+p.names[i], "each", p.column, medianOf(all[i], turn.switchCost)*many)
	}
	t.add(name+", CPU more", "%", p.column, 100*(ratioOf(all, turn.cost)-1))
	t.add(name+", throughput less", "%", p.column, 100*(1-ratioOf(all, turn.rate)))
	return nil
}

// measureAccess compares a relay that makes no access events with one that does.
func measureAccess(ctx context.Context, t *table, column, dir string, o *origin, opts options) error {
	plain := setup{program: opts.program, transport: column}
	silent := plain
	silent.settings = "access_log = false\n"
	labs, faces, end, err := twoLabs(ctx, filepath.Join(dir, "access"), o, [2]setup{silent, plain})
	if err != nil {
		return err
	}
	defer end()
	p := &pairOf{"access events", column, [2]string{"off", "on"}, labs, faces, opts}
	return p.requests(ctx, t)
}

// againstBare is the other build that is none: the floor.
const againstBare = "bare"

// measureAgainst compares another build with this one, or the floor.
func measureAgainst(ctx context.Context, t *table, column, dir string, o *origin, opts options) error {
	now := setup{program: opts.program, transport: column}
	before := now
	before.program = opts.against
	names, start := [2]string{"before", "now"}, twoLabs
	if opts.against == againstBare {
		names[0], start = "bare", bareAndLab
	}
	labs, faces, end, err := start(ctx, filepath.Join(dir, "against"), o, [2]setup{before, now})
	if err != nil {
		return err
	}
	defer end()
	p := &pairOf{"against", column, names, labs, faces, opts}
	if err := p.requests(ctx, t); err != nil {
		return err
	}
	if err := p.bulk(ctx, t); err != nil {
		return err
	}
	return p.datagrams(ctx, t)
}

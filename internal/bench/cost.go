package main

import "time"

// cost is what a figure took of both processes: where their clocks stood when
// it began. On the direct path it counts nothing.
type cost struct {
	lab          *lab
	relay, agent time.Duration
}

// begin reads the clocks.
func (l *lab) begin() cost {
	if l == nil {
		return cost{}
	}
	return cost{lab: l, relay: l.relay.cpu(), agent: l.agent.cpu()}
}

// each adds what one of so many took, of both together and of each.
func (c cost) each(t *table, name, unit, column string, amount float64) {
	if c.lab == nil || amount == 0 {
		return
	}
	scale := 1.0
	if unit != "ns/B" {
		scale = 1e3 // µs
	}
	relay := float64(c.lab.relay.cpu()-c.relay) / scale / amount
	agent := float64(c.lab.agent.cpu()-c.agent) / scale / amount
	t.add(name+", CPU of relay and agent", unit, column, relay+agent)
	t.add(name+", CPU of relay", unit, column, relay)
	t.add(name+", CPU of agent", unit, column, agent)
}

// cpu is that of both processes; zero on the direct path.
func (l *lab) cpu() time.Duration {
	if l == nil {
		return 0
	}
	return l.relay.cpu() + l.agent.cpu()
}

// settle waits until both processes rest: an upload that was cut off still
// drains, and must not count as the next figure's.
func (l *lab) settle() {
	for i, before := 0, l.cpu(); l != nil && i < 50; i++ {
		time.Sleep(100 * time.Millisecond)
		now := l.cpu()
		if now-before <= 10*time.Millisecond {
			return
		}
		before = now
	}
}

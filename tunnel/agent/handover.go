package agent

import (
	"context"
	"time"

	"adit/tunnel/agent/control"
)

// handTime is how long handing over one tunnel waits for the relay's answer.
const handTime = 3 * time.Second

// handOver makes the node of a retired session take down the tunnels that a session with another
// node serves by now. Otherwise visitors would keep coming to it, and under a steady load it would
// never end: a node that asked to be relieved would keep everything it had. Names stay, and so do
// the current visitors. given are the tunnels for which this has been done.
func (l *live) handOver(ctx context.Context, given map[*tunnel]bool) {
	for _, t := range l.servedElsewhere() {
		if given[t] || !l.Alive() {
			continue
		}
		try, cancel := context.WithTimeout(ctx, handTime)
		err := l.Control.Release(try, t.id, true)
		cancel()
		given[t] = err == nil || control.Refused(err)
	}
	try, cancel := context.WithTimeout(ctx, handTime)
	defer cancel()
	l.takeDown(try)
	l.Control.Close()
}

// leftWithLocked returns the sessions that have been replaced, but whose nodes may still send t's
// visitors, and sends none of these on.
func (a *Agent) leftWithLocked(t *tunnel) []*live {
	var list []*live
	for _, l := range a.served {
		if l != a.cur && l != a.second && l.Alive() && l.visitors.Forget(t.forward) {
			list = append(list, l)
		}
	}
	return list
}

// letGo makes the node of a replaced session take down t's endpoint; if it cannot now, fade tries
// again.
func (l *live) letGo(ctx context.Context, t *tunnel) {
	ctx, cancel := context.WithTimeout(ctx, handTime)
	defer cancel()
	if err := l.Control.Release(ctx, t.id, true); err != nil {
		l.agent.log.Debug("endpoint of a session that was left not taken down yet", "tunnel", t.id, "error", err)
		l.owe(t, err)
	}
	l.Control.Close()
}

// servedElsewhere returns the tunnels of l that are claimed on a session with another node that
// continues.
func (l *live) servedElsewhere() (there []*tunnel) {
	here := l.visitors.Tunnels()
	a := l.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	serves := func(h held, t *tunnel) bool {
		o := h.live
		return o != nil && o != l && (o == a.cur || o == a.second) && h.rev == t.rev && o.fit() && o.Welcome.NodeID != l.Welcome.NodeID
	}
	for _, t := range a.tunnels {
		if here[t.forward] && (serves(t.first, t) || serves(t.other, t)) {
			there = append(there, t)
		}
	}
	return there
}

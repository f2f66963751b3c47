package edge

import (
	"cmp"
	"slices"
	"time"
)

// A tunnel out of turn is probed after probeFirst, then at intervals that
// double up to probeMost.
const (
	probeFirst = time.Second
	probeMost  = 10 * time.Second
)

// pick returns the backends in the order in which to try them: the one with the
// fewest visitors first, in turn among equals, those out of turn after them, and
// further ways to the same tunnels last.
func (ep *Endpoint) pick() []*Backend { return ep.pickFor("") }

// pickFor is pick for a request. A path's origin that is down puts its path alone
// out of turn: the tunnel's others may be up, and other tunnels' for the path.
func (ep *Endpoint) pickFor(target string) []*Backend {
	order := inTurn(led(ep.Backends(), target), ep.turn.Add(1))
	if spare := ep.spare.Load(); spare != nil {
		order = append(slices.Clone(order), led(*spare, target)...)
	}
	return order
}

func inTurn(list []*Backend, turn uint32) []*Backend {
	if len(list) < 2 {
		return list
	}
	start := int(turn % uint32(len(list)))
	type place struct {
		backend *Backend
		out     bool
		busy    int64
	}
	order := make([]place, len(list))
	for i := range list {
		b := list[(start+i)%len(list)]
		order[i] = place{b, b.out.Load() || b.Agent.Session.Err() != nil, b.tunnel().busy.Load()}
	}
	slices.SortStableFunc(order, func(a, b place) int {
		if a.out != b.out {
			if a.out {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.busy, b.busy)
	})
	picked := make([]*Backend, len(order))
	for i, p := range order {
		picked[i] = p.backend
	}
	return picked
}

// takeOut takes a backend whose origin is down out of turn, if others share its
// endpoint, and probes it until it is back.
func (e *Edge) takeOut(ep *Endpoint, b *Backend) {
	if len(ep.Backends()) < 2 || e.life.Err() != nil || !b.out.CompareAndSwap(false, true) {
		return
	}
	e.log.Info("origin down; its tunnel is out of turn", "endpoint", ep.ID(), "client", b.Agent.ClientID, "key", b.name())
	e.attach.Lock()
	defer e.attach.Unlock()
	if !e.ending { // shutDown waits for ports after it has set it
		e.ports.Go(func() { e.probe(ep, b) })
	}
}

// probe asks b's agent to connect to its origin until that goes well, or b no
// longer serves the endpoint.
func (e *Edge) probe(ep *Endpoint, b *Backend) {
	for wait := probeFirst; ; wait = min(2*wait, probeMost) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-b.Agent.Session.Done():
			timer.Stop()
			return
		case <-e.life.Done():
			timer.Stop()
			return
		}
		if !slices.Contains(ep.Backends(), b.tunnel()) {
			b.out.Store(false) // it may come back as the best way to its tunnel, and is probed no more
			return
		}
		if b.origin.Reaches(e.life) {
			b.out.Store(false)
			e.log.Info("origin back; its tunnel takes its turn", "endpoint", ep.ID(), "client", b.Agent.ClientID, "key", b.name())
			return
		}
	}
}

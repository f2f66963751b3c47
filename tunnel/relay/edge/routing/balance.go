package routing

import (
	"cmp"
	"slices"
)

// Pick returns the backends in the order in which to try them: those with the fewest visitors
// first, taking turns among equals, then those out of turn, and last the other ways to the
// same tunnels.
func (ep *Endpoint) Pick() []*Backend { return ep.PickFor("") }

// PickFor is Pick for a request. If the origin of a path is down, only that path of that
// tunnel is out of turn: the tunnel's other origins may be up, and so may other tunnels'
// origins for the path.
func (ep *Endpoint) PickFor(target string) []*Backend {
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
		order[i] = place{b, b.out.Load() || b.Agent.Unheard.Load() || b.Agent.Session.Err() != nil, b.tunnel().busy.Load()}
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

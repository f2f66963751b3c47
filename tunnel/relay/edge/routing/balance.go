package routing

import (
	"cmp"
	"slices"
)

// Pick returns the backends in the order in which to try them: the one with the
// fewest visitors first, in turn among equals, those out of turn after them, and
// further ways to the same tunnels last.
func (ep *Endpoint) Pick() []*Backend { return ep.PickFor("") }

// PickFor is Pick for a request. A path's origin that is down puts its path alone
// out of turn: the tunnel's others may be up, and other tunnels' for the path.
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

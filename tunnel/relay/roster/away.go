package roster

import "time"

// maxAway limits how many agents are remembered as away; each takes about 250 bytes.
const maxAway = 1 << 16

// absence records when agents that are away had their last session, by client and
// instance. It is grouped by client because a client may say hello under any number of
// instances, and that must not mean a search through all the others each time.
type absence struct {
	of  map[string]map[string]time.Time
	all int
}

// begin records that an agent's last session has ended. If too many agents are
// remembered, those of its client are forgotten.
func (v *absence) begin(a Agent, now time.Time) {
	if v.all >= maxAway {
		v.all -= len(v.of[a.Client])
		delete(v.of, a.Client)
	}
	if v.of == nil {
		v.of = make(map[string]map[string]time.Time)
	}
	if v.of[a.Client] == nil {
		v.of[a.Client] = make(map[string]time.Time)
	}
	if _, known := v.of[a.Client][a.Instance]; !known {
		v.all++
	}
	v.of[a.Client][a.Instance] = now
}

// end forgets that an agent was away.
func (v *absence) end(a Agent) {
	list := v.of[a.Client]
	if _, known := list[a.Instance]; !known {
		return
	}
	v.all--
	if delete(list, a.Instance); len(list) == 0 {
		delete(v.of, a.Client)
	}
}

// since returns when an agent went away; ok is false if that is not known.
func (v *absence) since(a Agent) (at time.Time, ok bool) {
	at, ok = v.of[a.Client][a.Instance]
	return at, ok
}

// forget drops agents that went away before a given time.
func (v *absence) forget(before time.Time) {
	for client, list := range v.of {
		for instance, at := range list {
			if at.Before(before) {
				v.end(Agent{client, instance})
			}
		}
	}
}

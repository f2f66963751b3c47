package roster

import "time"

// maxAway bounds the agents that are away and remembered; each takes some 250 bytes.
const maxAway = 1 << 16

// absence is when agents that are away had their last session, by client and
// instance. A client may say hello under any number of instances, and what is
// remembered of the others is not to be looked through for each of them.
type absence struct {
	of  map[string]map[string]time.Time
	all int
}

// begin notes that an agent's last session has ended. Where too many are
// remembered, its client loses what it had of its others.
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

// since is when an agent went away; ok is false if that is not known.
func (v *absence) since(a Agent) (at time.Time, ok bool) {
	at, ok = v.of[a.Client][a.Instance]
	return at, ok
}

// forget drops those that went away before a time.
func (v *absence) forget(before time.Time) {
	for client, list := range v.of {
		for instance, at := range list {
			if at.Before(before) {
				v.end(Agent{client, instance})
			}
		}
	}
}

package relay

import "time"

const (
	awayTime = 15 * time.Minute // before another agent of the client may take a claim
	maxAway  = 1 << 16          // agents that are away and remembered; some 250 bytes each
)

// absence is when agents that are away had their last session, by client and
// instance. A client may say hello under any number of instances, and what is
// remembered of the others is not to be looked through for each of them.
type absence struct {
	of  map[string]map[string]time.Time
	all int
}

// begin notes that an agent's last session has ended. Where too many are
// remembered, its client loses what it had of its others.
func (a *absence) begin(key instanceKey, now time.Time) {
	if a.all >= maxAway {
		a.all -= len(a.of[key.client])
		delete(a.of, key.client)
	}
	if a.of == nil {
		a.of = make(map[string]map[string]time.Time)
	}
	if a.of[key.client] == nil {
		a.of[key.client] = make(map[string]time.Time)
	}
	if _, known := a.of[key.client][key.instance]; !known {
		a.all++
	}
	a.of[key.client][key.instance] = now
}

// end forgets that an agent was away.
func (a *absence) end(key instanceKey) {
	list := a.of[key.client]
	if _, known := list[key.instance]; !known {
		return
	}
	a.all--
	if delete(list, key.instance); len(list) == 0 {
		delete(a.of, key.client)
	}
}

// since is when an agent went away; ok is false if that is not known.
func (a *absence) since(key instanceKey) (at time.Time, ok bool) {
	at, ok = a.of[key.client][key.instance]
	return at, ok
}

// forget drops those that went away before a time.
func (a *absence) forget(before time.Time) {
	for client, list := range a.of {
		for instance, at := range list {
			if at.Before(before) {
				a.end(instanceKey{client, instance})
			}
		}
	}
}

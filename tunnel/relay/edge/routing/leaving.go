package routing

// An endpoint is leaving when it is closed and visits of it are under way, as after
// a hand-over: they go on, and policies, quotas and idle times hold for them as for
// others. It is forgotten with the last of them.

// All returns the endpoints that visitors may be on: those that are served
// and those that are leaving.
func (t *Table) All() []*Endpoint {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.allLocked()
}

func (t *Table) allLocked() []*Endpoint {
	list := make([]*Endpoint, 0, len(t.endpoints)+len(t.leaving))
	for _, ep := range t.endpoints {
		list = append(list, ep)
	}
	for ep := range t.leaving {
		list = append(list, ep)
	}
	return list
}

// withdraw has an endpoint be found no more by what a visitor asks for. It is
// leaving then, until review finds nobody on it.
func (t *Table) withdraw(ep *Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.endpoints, ep.Place())
	t.leaving[ep] = struct{}{}
	ep.closed.Store(true)
}

// review has a closed endpoint be leaving if it has visitors, and not if it has
// none. It is called when it was closed and then whenever one has come, who had
// found it before, or the last has gone. Of calls that meet, the last finds the
// visitors as they are.
func (t *Table) review(ep *Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, was := t.leaving[ep]
	in, out := ep.Meter.Bytes()
	switch is := ep.Visits.Any(); {
	case is && !was:
		t.leaving[ep] = struct{}{}
		t.bytesIn -= in // they count with those of its own again
		t.bytesOut -= out
	case was && !is:
		delete(t.leaving, ep)
		t.bytesIn += in
		t.bytesOut += out
	}
}

// Bytes are those of all endpoints since the start, served or not.
func (t *Table) Bytes() (in, out int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	in, out = t.bytesIn, t.bytesOut
	for _, ep := range t.allLocked() {
		moreIn, moreOut := ep.Meter.Bytes()
		in, out = in+moreIn, out+moreOut
	}
	return in, out
}

package routing

// An endpoint is leaving if it is closed but still has visits, as after a handover. The visits
// go on, and policies, quotas and idle times still apply to them. The endpoint is forgotten
// when the last visit ends.

// All returns the endpoints that may have visitors: those that are served and those that are
// leaving.
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

// withdraw makes an endpoint unreachable for new visitors. It is leaving from then on, until
// review finds no visitors on it.
func (t *Table) withdraw(ep *Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.endpoints, ep.Place())
	t.leaving[ep] = struct{}{}
	ep.closed.Store(true)
}

// review marks a closed endpoint as leaving if it has visitors, and forgets it if it has none.
// It is called when the endpoint is closed, when a visitor who had found it before arrives
// late, and when the last visitor has gone. If calls overlap, the last one sees the final
// state.
func (t *Table) review(ep *Endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, was := t.leaving[ep]
	in, out := ep.Meter.Bytes()
	switch is := ep.Visits.Any(); {
	case is && !was:
		t.leaving[ep] = struct{}{}
		t.bytesIn -= in // the endpoint's own meter counts them again
		t.bytesOut -= out
	case was && !is:
		delete(t.leaving, ep)
		t.bytesIn += in
		t.bytesOut += out
	}
}

// Bytes returns the payload of all endpoints since the start, whether or not they are still
// served.
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

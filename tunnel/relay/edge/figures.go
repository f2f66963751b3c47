package edge

import "sync/atomic"

// tally counts what no endpoint does.
type tally struct {
	turnedAway atomic.Uint64
	unknown    atomic.Uint64
	// Of endpoints that are no longer served; table.mu guards the sum with theirs.
	bytesIn, bytesOut int64
}

// Figures are of all visitors since the start.
type Figures struct {
	Connections       int    // TCP connections open now
	TurnedAway        uint64 // connections over the limit of an address, or with a bad PROXY header
	Unknown           uint64 // requests for a name that no endpoint serves
	BytesIn, BytesOut int64  // payload
}

// Figures returns a snapshot.
func (e *Edge) Figures() Figures {
	f := Figures{TurnedAway: e.tally.turnedAway.Load(), Unknown: e.tally.unknown.Load()}
	e.visits.mu.Lock()
	f.Connections = e.visits.all
	e.visits.mu.Unlock()
	e.table.mu.RLock()
	defer e.table.mu.RUnlock()
	f.BytesIn, f.BytesOut = e.tally.bytesIn, e.tally.bytesOut
	for _, ep := range e.table.endpoints {
		f.BytesIn += ep.bytesIn.Load()
		f.BytesOut += ep.bytesOut.Load()
	}
	return f
}

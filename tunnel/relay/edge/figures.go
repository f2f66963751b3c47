package edge

import (
	"net/netip"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
)

// tally counts what belongs to no endpoint, or to none any more.
type tally struct {
	turnedAway atomic.Uint64
	told       atomic.Int64 // when the log may be told of it again, by monotime.Now
	unknown    atomic.Uint64
	spared     struct { // what the log was told, by relieveMemory alone
		told  uint64
		again time.Duration
	}
	// Packets of udp visitors that are dropped.
	overBandwidth, unproved atomic.Uint64
	// Of endpoints that are neither served nor leaving; table.mu guards the sum with theirs.
	bytesIn, bytesOut int64
}

// tellEvery is how often the log is told of connections that are turned away.
const tellEvery = time.Minute

// turnAway counts a connection that is not let in.
func (e *Edge) turnAway(addr netip.Addr, reason string) {
	n := e.tally.turnedAway.Add(1)
	now, told := monotime.Now(), e.tally.told.Load()
	if int64(now) >= told && e.tally.told.CompareAndSwap(told, int64(now+tellEvery)) {
		e.log.Warn("connections are turned away", "address", addr, "reason", reason, "since_start", n)
	}
}

// tellOfSpared tells the log that connections have made room, at most as often as it
// is told of those that are turned away.
func (e *Edge) tellOfSpared() {
	e.visits.mu.Lock()
	all, n := e.visits.all, e.visits.spared
	e.visits.mu.Unlock()
	now := monotime.Now()
	if t := &e.tally.spared; n > t.told && now >= t.again {
		t.told, t.again = n, now+tellEvery
		e.log.Warn("as many connections are open as may be, and some that asked for nothing made room for others", "connections", all, "since_start", n)
	}
}

// Figures are of all visitors since the start.
type Figures struct {
	Connections       int    // TCP connections open now
	TurnedAway        uint64 // connections and requests over a limit, or with a bad PROXY header
	Spared            uint64 // connections that asked for nothing and made room for others
	Unknown           uint64 // requests for a name that no endpoint serves
	BytesIn, BytesOut int64  // payload
	OverBandwidth     uint64 // packets of udp visitors, both ways, that a bandwidth had no room for
	Unproved          uint64 // packets to udp visitors that may be forged, beyond the allowed amplification
}

// Figures returns a snapshot.
func (e *Edge) Figures() Figures {
	f := Figures{TurnedAway: e.tally.turnedAway.Load(), Unknown: e.tally.unknown.Load(), OverBandwidth: e.tally.overBandwidth.Load(), Unproved: e.tally.unproved.Load()}
	e.visits.mu.Lock()
	f.Connections, f.Spared = e.visits.all, e.visits.spared
	e.visits.mu.Unlock()
	e.table.mu.RLock()
	defer e.table.mu.RUnlock()
	f.BytesIn, f.BytesOut = e.tally.bytesIn, e.tally.bytesOut
	for _, ep := range e.table.withLeavingLocked() {
		in, out := ep.Meter.Bytes()
		f.BytesIn, f.BytesOut = f.BytesIn+in, f.BytesOut+out
	}
	return f
}

// Visitors counts the requests, connections and flows under way by the type of
// their endpoint, also of those that were given back meanwhile.
func (e *Edge) Visitors() map[string]int64 {
	open := make(map[string]int64)
	for _, ep := range e.table.withLeaving() {
		open[ep.Type] += ep.Counters().Open
	}
	return open
}

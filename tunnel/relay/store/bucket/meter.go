package bucket

import (
	"sync/atomic"
	"time"
)

// Meter counts and times writes.
type Meter struct {
	writes, errors, nanos atomic.Uint64
	full                  atomic.Pointer[time.Time] // when a write was last refused for lack of room
}

// fullTime is how long the store counts as full after a write was refused for lack of room.
// Nodes write something every few seconds.
const fullTime = 10 * time.Second

// Writes is a snapshot of a Meter.
type Writes struct {
	Done   uint64        // acknowledged, or in conflict with another node's write
	Errors uint64        // all others
	Time   time.Duration // of all together
}

// Add counts a write that began at start. A conflict with another writer is not an error.
func (m *Meter) Add(start time.Time, err error) {
	m.nanos.Add(uint64(time.Since(start)))
	if IsFull(err) && !IsUnmade(err) {
		now := time.Now()
		m.full.Store(&now)
	}
	if err != nil && !IsConflict(err) {
		m.errors.Add(1)
		return
	}
	m.writes.Add(1)
}

// Full reports whether a write in the last seconds was refused for lack of room.
func (m *Meter) Full() bool {
	at := m.full.Load()
	return at != nil && time.Since(*at) < fullTime
}

// Written returns the number of writes and the time they took.
func (m *Meter) Written() Writes {
	return Writes{Done: m.writes.Load(), Errors: m.errors.Load(), Time: time.Duration(m.nanos.Load())}
}

package bucket

import (
	"sync/atomic"
	"time"
)

// Meter times writes.
type Meter struct {
	writes, errors, nanos atomic.Uint64
	full                  atomic.Pointer[time.Time] // when a write was last refused for want of room
}

// fullTime is how long a write that was refused for want of room says that there is none:
// nodes write something every few seconds.
const fullTime = 10 * time.Second

// Writes is a snapshot of a Meter.
type Writes struct {
	Done   uint64        // with an acknowledgement, or a conflict with another node's
	Errors uint64        // neither
	Time   time.Duration // of all together
}

// Add counts a write that began at start. That another was first is no error.
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

// Full reports whether the store has had no room for a write of the last seconds.
func (m *Meter) Full() bool {
	at := m.full.Load()
	return at != nil && time.Since(*at) < fullTime
}

// Written returns how many writes there were, and the time they took.
func (m *Meter) Written() Writes {
	return Writes{Done: m.writes.Load(), Errors: m.errors.Load(), Time: time.Duration(m.nanos.Load())}
}

package bucket

import (
	"sync/atomic"
	"time"
)

// Meter times writes.
type Meter struct {
	writes, errors, nanos atomic.Uint64
}

// Writes is a snapshot of a Meter.
type Writes struct {
	Done   uint64        // with an acknowledgement, or a conflict with another node's
	Errors uint64        // neither
	Time   time.Duration // of all together
}

// Add counts a write that began at start. That another was first is no error.
func (m *Meter) Add(start time.Time, err error) {
	m.nanos.Add(uint64(time.Since(start)))
	if err != nil && !IsConflict(err) {
		m.errors.Add(1)
		return
	}
	m.writes.Add(1)
}

// Written returns how many writes there were, and the time they took.
func (m *Meter) Written() Writes {
	return Writes{Done: m.writes.Load(), Errors: m.errors.Load(), Time: time.Duration(m.nanos.Load())}
}

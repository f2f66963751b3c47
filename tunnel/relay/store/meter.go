package store

import (
	"sync/atomic"
	"time"

	"adit/tunnel/relay/store/bucket"
)

// meter times the writes of a store.
type meter struct {
	writes, errors, nanos atomic.Uint64
}

// Writes is a snapshot of a store's writes since it was opened.
type Writes struct {
	Done   uint64        // with an acknowledgement, or a conflict with another node's
	Errors uint64        // neither
	Time   time.Duration // of all together
}

// add counts a write that began at start. That another was first is no error.
func (m *meter) add(start time.Time, err error) {
	m.nanos.Add(uint64(time.Since(start)))
	if err != nil && !bucket.IsConflict(err) {
		m.errors.Add(1)
		return
	}
	m.writes.Add(1)
}

// Writes returns how many writes there were, and the time they took.
func (s *Store) Writes() Writes {
	return Writes{Done: s.meter.writes.Load(), Errors: s.meter.errors.Load(), Time: time.Duration(s.meter.nanos.Load())}
}

// Connected reports whether the store can be reached now.
func (s *Store) Connected() bool { return s.engine.Connected() }

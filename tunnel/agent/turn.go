package agent

import (
	"sync"
	"time"
)

const (
	ownWork  = 2 * time.Second // how long a request waits for the agent's own work
	turnPace = 10 * time.Millisecond
)

// turn lets one change at a time be made. While a control-plane request has it,
// another is told so at once; the agent's own work, of which whoever asks knows
// nothing, is waited for.
type turn struct {
	mu        sync.Mutex
	held, own bool
}

// take takes the turn, unless it is held; then it reports whether by own work.
func (t *turn) take(own bool) (taken, heldByOwn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		return false, t.own
	}
	t.held, t.own = true, own
	return true, false
}

// TryLock takes the turn for a control-plane request, if no other has it.
func (t *turn) TryLock() bool {
	for end := time.Now().Add(ownWork); ; time.Sleep(turnPace) {
		taken, own := t.take(false)
		if taken || !own || time.Now().After(end) {
			return taken
		}
	}
}

// TryOwn takes the turn for the agent's own work, if nobody has it.
func (t *turn) TryOwn() bool {
	taken, _ := t.take(true)
	return taken
}

// Lock waits for the turn, for the agent's own work.
func (t *turn) Lock() {
	for !t.TryOwn() {
		time.Sleep(turnPace)
	}
}

// Unlock gives the turn back.
func (t *turn) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.own = false, false
}

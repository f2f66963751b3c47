// Package turn lets one change at a time be made. A change that a person asks for is refused at
// once if another such change is in progress; the agent's own work, of which people know nothing,
// is waited for.
package turn

import (
	"sync"
	"time"
)

const (
	ownWork = 2 * time.Second // how long a request waits for the agent's own work
	pace    = 10 * time.Millisecond
)

// Turn lets one change at a time be made. While a control-plane request holds it, another one is
// refused at once. The agent's own work, which callers know nothing about, is waited for. The zero
// Turn is held by nobody.
type Turn struct {
	mu        sync.Mutex
	held, own bool
}

// take takes the turn, unless it is held; in that case it reports whether the agent's own work
// holds it.
func (t *Turn) take(own bool) (taken, heldByOwn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		return false, t.own
	}
	t.held, t.own = true, own
	return true, false
}

// TryLock takes the turn for a control-plane request, unless another one holds it.
func (t *Turn) TryLock() bool {
	for end := time.Now().Add(ownWork); ; time.Sleep(pace) {
		taken, own := t.take(false)
		if taken || !own || time.Now().After(end) {
			return taken
		}
	}
}

// TryOwn takes the turn for the agent's own work, unless somebody holds it.
func (t *Turn) TryOwn() bool {
	taken, _ := t.take(true)
	return taken
}

// Lock waits for the turn, for the agent's own work.
func (t *Turn) Lock() {
	for !t.TryOwn() {
		time.Sleep(pace)
	}
}

// Unlock gives up the turn.
func (t *Turn) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.own = false, false
}

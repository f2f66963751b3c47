package relay

import (
	"sync"

	"golang.org/x/time/rate"
)

// The limit on what one client may add at one node to the audit log, which never forgets:
// a burst of entries, and then one a minute.
const (
	trailBurst = 1000
	trailRate  = rate.Limit(1.0 / 60)
)

// trail limits what clients add to the audit log.
type trail struct {
	mu sync.Mutex
	of map[string]*rate.Limiter // by client id
}

// leave reports whether a client may add one more entry now, and counts it.
func (t *trail) leave(clientID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = make(map[string]*rate.Limiter)
	}
	if t.of[clientID] == nil {
		t.of[clientID] = rate.NewLimiter(trailRate, trailBurst)
	}
	return t.of[clientID].Allow()
}

// forget drops what is stored about a client that no longer exists.
func (t *trail) forget(clientID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, clientID)
}

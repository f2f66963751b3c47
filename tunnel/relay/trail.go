package relay

import (
	"sync"

	"golang.org/x/time/rate"
)

// What one client may leave in the audit log at one node, which forgets nothing: so
// many entries at once, and then one a minute.
const (
	trailBurst = 1000
	trailRate  = rate.Limit(1.0 / 60)
)

// trail is what clients leave in the audit log.
type trail struct {
	mu sync.Mutex
	of map[string]*rate.Limiter // by client id
}

// leave reports whether a client may leave one entry more now, and counts it.
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

// forget drops what is known of a client that is no longer.
func (t *trail) forget(clientID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, clientID)
}

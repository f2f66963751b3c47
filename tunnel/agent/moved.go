package agent

import (
	"slices"
	"time"
)

// moved keeps where the relay of l says that it is from now on, and returns what is
// new of it and written: nil if nothing is.
func (a *Agent) moved(l *live, addrs []string) []string {
	var good []string
	for _, addr := range addrs {
		if len(good) < 8 && validRelay(addr) {
			good = append(good, addr)
		}
	}
	a.mu.Lock()
	if !a.servesLocked(l) || len(good) == 0 || sameAddresses(good, a.login.auth.Addresses) {
		a.mu.Unlock()
		return nil
	}
	a.login.moveTo(good)
	a.moves.pending = true
	a.mu.Unlock()
	if wait := a.saveMoved(false); wait > 0 && wait < forever {
		a.poke() // the keeper writes them then
		return nil
	}
	return good
}

// forever is how long nothing has to be done.
const forever = time.Hour

// saveMoved writes the relay's addresses if they are not written yet and may be,
// or are to be in any case. It returns how long that has to wait.
func (a *Agent) saveMoved(now bool) time.Duration {
	a.mu.Lock()
	if !a.moves.pending {
		a.mu.Unlock()
		return forever
	}
	if wait := a.moves.wait(time.Now()); wait > 0 && !now {
		a.mu.Unlock()
		return wait
	}
	a.moves.take(time.Now())
	a.mu.Unlock()
	_ = a.saveAuth() // tried again with the next change
	return forever
}

// sameAddresses reports whether both have the same in any order: nodes are told
// in another each time, and the order is not worth a write.
func sameAddresses(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

package agent

import (
	"slices"
	"time"
)

// moved stores the addresses that the relay of l announces for itself. It returns them if they are
// new and have been written, else nil.
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

// forever means that nothing needs to be done.
const forever = time.Hour

// saveMoved writes the relay's addresses if they have not been written yet, unless the write has to
// wait and now is not set. It returns how long it has to wait.
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

// sameAddresses reports whether both contain the same addresses in any order: nodes are announced
// in a different order each time, and the order is not worth a write.
func sameAddresses(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

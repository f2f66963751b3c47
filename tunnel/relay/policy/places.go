package policy

import (
	"net/netip"
	"slices"
	"sync"
)

// hashing is where all passwords are tried, and hashed: each takes a core for some 50 ms.
var hashing = newTryPlaces(2)

// tryPlaces bounds how many passwords are tried at once: so many in all, and one of a
// client, who may have any number of policies. Those who wait have their turn by start
// times, as in fair queueing: whose client and address have both not had one for longest
// goes first. So neither guesses at one client's policies nor one address that guesses at
// everybody's keep others waiting.
type tryPlaces struct {
	mu      sync.Mutex
	free    int
	turns   uint64 // given so far
	clients map[string]*tryTurns
	addrs   map[netip.Prefix]*tryTurns
	waiting []*tryWait // who came first is first
}

// tryTurns is what a client or an address has had, while somebody of it waits or tries.
type tryTurns struct {
	users int // that wait or try
	busy  bool
	last  uint64 // turn, or those given before it came
}

type tryWait struct {
	client, addr *tryTurns
	turn         chan struct{} // closed when it has come
}

func newTryPlaces(free int) *tryPlaces {
	return &tryPlaces{free: free, clients: make(map[string]*tryTurns), addrs: make(map[netip.Prefix]*tryTurns)}
}

// take waits for a place; leave gives it back.
func (t *tryPlaces) take(client string, addr netip.Prefix) (leave func()) {
	t.mu.Lock()
	w := &tryWait{joinTry(t.clients, client, t.turns), joinTry(t.addrs, addr, t.turns), make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.next()
	t.mu.Unlock()
	<-w.turn
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.free++
		w.client.busy = false
		leaveTry(t.clients, client)
		leaveTry(t.addrs, addr)
		t.next()
	}
}

// next gives free places to those whose turn it is; t.mu is held.
func (t *tryPlaces) next() {
	for t.free > 0 {
		best := -1
		for i, w := range t.waiting {
			if !w.client.busy && (best < 0 || w.before(t.waiting[best])) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := t.waiting[best]
		t.waiting = slices.Delete(t.waiting, best, best+1)
		t.free--
		t.turns++
		w.client.busy, w.client.last, w.addr.last = true, t.turns, t.turns
		close(w.turn)
	}
}

// before reports whether w's turn is before that of o, who came earlier.
func (w *tryWait) before(o *tryWait) bool {
	late, later := max(w.client.last, w.addr.last), max(o.client.last, o.addr.last)
	if late != later {
		return late < later
	}
	return min(w.client.last, w.addr.last) < min(o.client.last, o.addr.last)
}

func joinTry[K comparable](all map[K]*tryTurns, who K, turns uint64) *tryTurns {
	v := all[who]
	if v == nil {
		v = &tryTurns{last: turns}
		all[who] = v
	}
	v.users++
	return v
}

func leaveTry[K comparable](all map[K]*tryTurns, who K) {
	v := all[who]
	if v.users--; v.users == 0 {
		delete(all, who)
	}
}

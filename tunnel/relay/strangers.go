package relay

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"adit/internal/netblock"
)

// strangers counts, for each peer, the sessions whose agent has not said who it
// is. They need no token, so that anybody could hold all the relay's places.
type strangers struct {
	limit      int // of one peer
	turnedAway atomic.Uint64

	mu   sync.Mutex
	from map[netip.Prefix]int
	all  int
}

// enter takes a place for a session of addr. leave gives it back, at its first
// call; it is there in any case, and ok says whether there was a place.
func (s *strangers) enter(addr net.Addr) (leave func(), ok bool) {
	who := netblock.OfPeer(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from[who] >= s.limit {
		s.turnedAway.Add(1)
		return func() {}, false
	}
	if s.from == nil {
		s.from = make(map[netip.Prefix]int)
	}
	s.from[who]++
	s.all++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.from[who]--; s.from[who] == 0 {
			delete(s.from, who)
		}
	}), true
}

// open is how many strangers there are.
func (s *strangers) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

package relay

import (
	"net"
	"sync/atomic"
	"time"

	"adit/internal/crowd"
	"adit/internal/netblock"
)

// maxStrangers is how many strangers there may be together. Where all places are
// taken and no peer has many of them, one keeps its own for strangerGrace.
const (
	maxStrangers  = 4096
	strangerGrace = 3 * time.Second
)

// strangers are the sessions whose agent has not said who it is. They need no
// token, so that anybody could hold all the relay's places: one peer may have
// some, and where all are taken the longest of the most crowded peer's ends. An
// agent says who it is as soon as it is connected.
type strangers struct {
	crowd      crowd.Crowd
	turnedAway atomic.Uint64
}

// enter takes a place for a session of addr. leave gives it back, at its first
// call; it is there in any case, and ok says whether there was a place. cut ends
// the session if another gets its place; it must not wait.
func (s *strangers) enter(addr net.Addr, cut func()) (leave func(), ok bool) {
	leave, ok = s.crowd.Enter(netblock.OfPeer(addr), func() {
		s.turnedAway.Add(1)
		cut()
	})
	if !ok {
		s.turnedAway.Add(1)
	}
	return leave, ok
}

// open is how many strangers there are.
func (s *strangers) open() int { return s.crowd.Len() }

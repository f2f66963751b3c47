package relay

import (
	"net"
	"sync/atomic"
	"time"

	"adit/internal/crowd"
	"adit/internal/netblock"
)

// maxStrangers is how many strangers there may be in total. If all places are taken and
// no peer has many of them, each stranger keeps its place for strangerGrace.
const (
	maxStrangers  = 4096
	strangerGrace = 3 * time.Second
)

// strangers holds the sessions whose agent has not said who it is. They need no token, so
// anybody could take all of the relay's places. One peer may therefore have only some,
// and if all are taken, the oldest session of the most crowded peer ends. An agent says
// who it is as soon as it is connected.
type strangers struct {
	crowd      crowd.Crowd
	turnedAway atomic.Uint64
}

// enter takes a place for a session of addr, and ok reports whether there was one. leave
// gives the place back at its first call; it is never nil. cut ends the session if
// another gets its place; it must not wait.
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

// open returns how many strangers there are.
func (s *strangers) open() int { return s.crowd.Len() }

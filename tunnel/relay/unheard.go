package relay

import (
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/roster"
)

const (
	// unheardTime, or four round trips, is how long an agent that came anew may leave it
	// open whether it still is at the other end of the session that it had. By itself a
	// session whose visitors wait is found to be dead after three seconds, and another
	// after its keep-alive.
	unheardTime = time.Second
	unheardLook = 20 * time.Millisecond
)

// cameElsewhere is told that an agent has come to another node, and of the node that it
// says that it has its other session with. A process that has taken the place of one that
// was killed knows nothing of the sessions that it had: one here may be dead, and nobody
// has noticed yet. Visitors go other ways, where there are any, until it is heard.
func (r *Relay) cameElsewhere(a roster.Agent, beside string) {
	s := r.roster.Newest(a)
	if s == nil || beside == r.id || s.agent.Unheard.Swap(true) {
		return
	}
	r.edge.Reorder(s.faces()...)
	r.task(func() {
		if !s.answers() {
			s.link.Close("the agent came to another node, and is not heard here")
			return
		}
		s.agent.Unheard.Store(false)
		r.edge.Reorder(s.faces()...)
	})
}

// answers asks whether the agent still is at the other end, and waits for a sign of life.
func (s *session) answers() bool {
	asked := time.Now()
	link.Probe(s.link)
	end := time.NewTimer(min(max(unheardTime, 4*s.link.Stats().RTT), replacedTime))
	defer end.Stop()
	look := time.NewTicker(unheardLook)
	defer look.Stop()
	for {
		select {
		case <-s.link.Done():
			return false
		case <-end.C:
			return false
		case <-look.C:
			if s.link.Stats().LastReceived.After(asked) {
				return true
			}
		}
	}
}

// faces are those that the session's tunnels are behind.
func (s *session) faces() []routing.Face {
	s.mu.Lock()
	defer s.mu.Unlock()
	faces := make([]routing.Face, 0, len(s.tunnels))
	for _, t := range s.tunnels {
		faces = append(faces, t.face)
	}
	return faces
}

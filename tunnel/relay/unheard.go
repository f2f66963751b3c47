package relay

import (
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/roster"
)

const (
	// unheardTime, or four round trips if that is longer, is how long an agent that has
	// come to another node may take to show that it is still at the other end of its
	// session here. Without this check, it takes three seconds to detect a dead session
	// if visitors are waiting, and a keep-alive interval otherwise.
	unheardTime = time.Second
	unheardLook = 20 * time.Millisecond
)

// cameElsewhere is called when an agent has connected to another node. beside is the node
// that, according to the agent, has its other session. A process that replaces one that
// was killed knows nothing of the sessions of the killed one, so a session here may be
// dead without anyone having noticed. Until the agent is heard on it, visitors prefer
// other ways if there are any.
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

// answers asks the agent for a sign of life, waits for it, and reports whether it came.
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

// faces returns the faces that the session's tunnels are behind.
func (s *session) faces() []routing.Face {
	s.mu.Lock()
	defer s.mu.Unlock()
	faces := make([]routing.Face, 0, len(s.tunnels))
	for _, t := range s.tunnels {
		faces = append(faces, t.face)
	}
	return faces
}

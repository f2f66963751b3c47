package relay

import (
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/roster"
)

const (
	// unheardTime is how long an agent may leave it open whether it still is here, after it
	// came to another node as if it was not. By itself a session without traffic is found
	// to be dead only after its keep-alive.
	unheardTime = 3 * time.Second
	unheardLook = 20 * time.Millisecond
)

// cameElsewhere is told that an agent has come to another node, and of the node that it
// says that it has its other session with. A process that has taken the place of one that
// was killed knows nothing of the sessions that it had: one here may be dead, and nobody
// has noticed yet.
func (r *Relay) cameElsewhere(a roster.Agent, beside string) {
	if s := r.roster.Newest(a); s != nil && beside != r.id && !s.agent.Unheard.Swap(true) {
		r.edge.Reorder(s.faces()...)
		r.task(func() { r.hear(s) })
	}
}

// hear has visitors go other ways, where there are any, until the agent is heard here.
func (r *Relay) hear(s *session) {
	asked := time.Now()
	link.Probe(s.link)
	end := time.NewTimer(unheardTime)
	defer end.Stop()
	look := time.NewTicker(unheardLook)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-s.link.Done():
			return
		case <-end.C:
			s.link.Close("the agent came to another node, and is not heard here")
			return
		}
		if s.link.Stats().LastReceived.After(asked) {
			s.agent.Unheard.Store(false)
			r.edge.Reorder(s.faces()...)
			return
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

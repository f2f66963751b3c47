package agent

import (
	"context"

	"adit/tunnel/agent/forward"
	"adit/tunnel/agent/session"
	"adit/tunnel/agent/visits"
)

// live is one session, with what the agent does on it.
type live struct {
	*session.Session
	agent    *Agent
	visitors *forward.Session
	visits   *visits.Flows // of the agent's own visits
	again    chan struct{} // tells claimAll to look for tunnels; room for one
	// epoch is that of the token under which it is in use. The agent's mutex guards it.
	epoch int
	// owed are tunnels whose endpoints the relay could not be told to take down: they have been
	// stopped, or another session has them. The agent's mutex guards it.
	owed map[*tunnel]struct{}
}

func newLive(a *Agent, s *session.Session) *live {
	own := visits.NewFlows(s.Link)
	return &live{Session: s, agent: a, visitors: a.forward.Session(s.Link, own), visits: own, again: make(chan struct{}, 1)}
}

// connect makes a session at one of several addresses, and returns the address to which its result
// belongs: see session.Dialer.
func (a *Agent) connect(ctx context.Context, addrs []string, j session.Joining) (*live, string, error) {
	s, addr, err := a.dialer.ConnectAny(ctx, addrs, j)
	if err != nil {
		return nil, addr, err
	}
	return newLive(a, s), addr, nil
}

// end closes the session; on nil it does nothing.
func (l *live) end(reason string) {
	if l != nil {
		l.End(reason)
	}
}

// fit reports whether l is good enough to be the session in use; nil is not.
func (l *live) fit() bool { return l != nil && l.Fit() }

// changed makes the keepers of sessions check for work, and updates the views.
func (l *live) changed() {
	l.agent.publish()
	l.agent.poke()
	l.agent.wantSecond()
}

// doubted makes the keepers of sessions check for work.
func (l *live) doubted() {
	l.agent.poke()
	l.agent.wantSecond()
}

// sessions are the session in use and the second one; either may be nil.
type sessions [2]*live

// dropLocked removes the sessions from use; the caller ends them.
func (a *Agent) dropLocked() sessions {
	all := sessions{a.cur, a.second}
	a.cur, a.second = nil, nil
	return all
}

func (all sessions) end(reason string) {
	for _, l := range all {
		l.end(reason)
	}
}

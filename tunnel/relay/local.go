package relay

import (
	"context"

	"adit/tunnel/link"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/wire"
)

// local is what this node does for other nodes.
type local struct{ relay *Relay }

func (l local) session(id string) *session { return l.relay.roster.Session(id) }

// OpenStream opens a stream to an agent that is connected here.
func (l local) OpenStream(ctx context.Context, id string) (link.Stream, error) {
	s := l.session(id)
	if s == nil {
		return nil, nodes.ErrNoSession
	}
	return s.link.OpenStream(ctx)
}

// Flow begins a UDP visitor's flow to an agent that is connected here.
func (l local) Flow(id string, endpoint uint32, answer func([]byte), over func()) nodes.Flow {
	s := l.session(id)
	if s == nil {
		return nil
	}
	return s.agent.Flows.Relay(s.agent.Session, endpoint, answer, over)
}

// Access tells an agent about its visitors at another node, if it wants to know.
func (l local) Access(id string, list []wire.Access) (wanted bool) {
	s := l.session(id)
	if s == nil || s.unobserved.Load() {
		return false
	}
	for i := range list {
		s.visited(list[i])
	}
	return true
}

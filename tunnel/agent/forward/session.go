package forward

import (
	"context"
	"sync"

	"adit/tunnel/link"
)

// Session forwards the visitors that arrive over one session.
type Session struct {
	numbers
	by      *Forwarder
	session link.Session
	own     OwnVisits
}

// OwnVisits receives the packets of the agent's own visits. They are valid until Bring returns,
// which must not block.
type OwnVisits interface {
	Bring(number uint32, payloads [][]byte)
}

// Session returns a Session that forwards the visitors of s once Serve is called.
func (f *Forwarder) Session(s link.Session, own OwnVisits) *Session {
	return &Session{numbers: numbers{tunnels: make(map[uint32]*Tunnel)}, by: f, session: s, own: own}
}

// Serve serves the visitors that the relay sends, until the session or ctx ends and all of them are
// gone.
func (s *Session) Serve(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.receiveDatagrams(ctx) })
	for {
		stream, err := s.session.AcceptStream(ctx)
		if err != nil {
			return
		}
		wg.Go(func() { s.visit(ctx, stream) })
	}
}

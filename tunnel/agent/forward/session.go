package forward

import (
	"context"
	"sync"

	"adit/tunnel/link"
)

// Session forwards the visitors that come over one session.
type Session struct {
	numbers
	by      *Forwarder
	session link.Session
	own     OwnVisits
}

// OwnVisits take the packets of flows with which the agent itself visits. They are valid
// until Bring returns, which must not wait.
type OwnVisits interface {
	Bring(number uint32, payloads [][]byte)
}

// Session returns what forwards the visitors of s, once Serve is called.
func (f *Forwarder) Session(s link.Session, own OwnVisits) *Session {
	return &Session{numbers: numbers{tunnels: make(map[uint32]*Tunnel)}, by: f, session: s, own: own}
}

// Serve serves the visitors that the relay sends, until the session ends or ctx does,
// and all of them are gone.
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

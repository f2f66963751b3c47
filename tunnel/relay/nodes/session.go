package nodes

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// maxDatagram leaves room for the session's id in a datagram between nodes.
const maxDatagram = 65535 - 1 - maxID

// Session is an agent's session on another node, and a link.Session: streams
// and datagrams go to the agent by way of that node.
type Session struct {
	Agent
	Node string // that has the session
	// Before: the agent was there when the node began to tell what it has.
	Before bool

	peer *peer
	link link.Session // with the node
	mute atomic.Bool  // the agent wants no access events
	done chan struct{}
	once sync.Once
	err  error // set before done is closed
}

func newSession(p *peer, l link.Session, a Agent) *Session {
	return &Session{Agent: a, Node: p.id, peer: p, link: l, done: make(chan struct{})}
}

func (s *Session) end(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.done)
	})
}

// OpenStream opens a stream to the agent.
func (s *Session) OpenStream(ctx context.Context) (link.Stream, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	st, err := s.link.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	return &farStream{Stream: st, head: appendSession([]byte{streamVisitor}, s.Agent.Session)}, nil
}

// AcceptStream never returns one: agents open streams to their own node.
func (s *Session) AcceptStream(ctx context.Context) (link.Stream, error) {
	select {
	case <-s.done:
		return nil, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SendDatagram sends a packet of wire.Flow's form.
func (s *Session) SendDatagram(b []byte) error {
	if len(b) > maxDatagram {
		return link.ErrDatagramTooLarge
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	*buf = append(appendSession((*buf)[:0], s.Agent.Session), b...)
	return s.link.SendDatagram(*buf)
}

// GatherDatagrams and SendGathered are those of the session with the node.
func (s *Session) GatherDatagrams() { link.GatherDatagrams(s.link) }
func (s *Session) SendGathered()    { link.SendGathered(s.link) }

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// ReceiveDatagram never returns one: Far is told of them.
func (s *Session) ReceiveDatagram(ctx context.Context, _ []byte) (int, error) {
	_, err := s.AcceptStream(ctx)
	return 0, err
}

// MaxDatagram is the largest packet that SendDatagram takes.
func (s *Session) MaxDatagram() int { return maxDatagram }

// Transport is that of the session with the node.
func (s *Session) Transport() link.Transport { return s.link.Transport() }

// LocalAddr and RemoteAddr are those of the session with the node.
func (s *Session) LocalAddr() net.Addr  { return s.link.LocalAddr() }
func (s *Session) RemoteAddr() net.Addr { return s.link.RemoteAddr() }

// Stats are those of the session with the node.
func (s *Session) Stats() link.Stats { return s.link.Stats() }

// Done is closed when the session has ended, or that with its node.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why it has ended; nil while it lives. It does not wait for what the
// node has told last: with the session to it all that it had is gone.
func (s *Session) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return s.link.Err()
	}
}

// Close does nothing: the session is its node's to close.
func (s *Session) Close(string) error { return nil }

// Access tells the agent's node of a visitor of the agent's, until that has
// answered that the agent wants none; it may be dropped.
func (s *Session) Access(a wire.Access) {
	if s.mute.Load() {
		return
	}
	select {
	case s.peer.access <- accessEvent{s.Agent.Session, a}:
	default:
	}
}

// Mute reports whether the agent is told of no more visitors.
func (s *Session) Mute() bool { return s.mute.Load() }

// farStream is a visitor's stream to an agent on another node.
type farStream struct {
	link.Stream
	write sync.Mutex
	head  []byte
	begun atomic.Bool // the agent has answered
}

// Write sends the stream's head with the first bytes.
func (f *farStream) Write(b []byte) (int, error) {
	f.write.Lock()
	defer f.write.Unlock()
	if f.head == nil {
		return f.Stream.Write(b)
	}
	skip := len(f.head)
	n, err := f.Stream.Write(append(f.head, b...))
	f.head = nil
	return max(n-skip, 0), err
}

// Read takes the node's answer that the agent is not there off the stream.
func (f *farStream) Read(b []byte) (int, error) {
	if f.begun.Load() || len(b) == 0 {
		return f.Stream.Read(b)
	}
	n, err := f.Stream.Read(b[:1])
	if n == 1 && b[0] == notHere {
		return 0, absent{}
	}
	if n == 1 {
		f.begun.Store(true)
	}
	return n, err
}

// absent is the error about an agent that is not where it was: nothing of what
// the visitor sent has reached anybody.
type absent struct{}

func (absent) Error() string        { return ErrNoSession.Error() }
func (absent) Is(target error) bool { return target == ErrNoSession }

// NoAgent tells the edge that another may be asked.
func (absent) NoAgent() bool { return true }

// isEnd reports whether a read's error is the stream's own end.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }

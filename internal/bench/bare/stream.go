package bare

import (
	"errors"
	"io"
	"net"
	"sync"

	"adit/internal/sockio"
)

// stream is a visitor's connection at the relay, and at the agent the one to the
// origin for it.
type stream struct {
	id uint32

	mu    sync.Mutex
	conn  *sockio.Conn // nil while it is dialled
	early []byte       // what came before conn was there
	// No more comes from conn, or goes to it.
	readOver, writeOver bool
	gone                bool
}

// acceptVisitors serves connections until the listener is closed.
func (e *end) acceptVisitors(l net.Listener) {
	for id := uint32(0); ; id++ {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s := &stream{id: id, conn: sockio.New(conn.(*net.TCPConn))}
		if !e.begin(s, func() { e.copy(s, kindOpen) }) {
			conn.Close()
			return
		}
	}
}

// begin has run carry a new stream, unless all has ended.
func (e *end) begin(s *stream, run func()) bool {
	e.tables.Lock()
	defer e.tables.Unlock()
	if e.ended {
		return false
	}
	e.streams[s.id] = s
	e.open.Add(1)
	e.running.Go(run)
	return true
}

// dial connects a stream to the origin, and copies from there.
func (e *end) dial(s *stream) {
	conn, err := (&net.Dialer{KeepAlive: -1}).Dial("tcp4", e.origin.TCP)
	if err != nil {
		e.reset(s)
		return
	}
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		conn.Close()
		return
	}
	s.conn = sockio.New(conn.(*net.TCPConn))
	_, err = s.conn.Write(s.early)
	s.early = nil
	if s.writeOver {
		s.conn.CloseWrite()
	}
	s.mu.Unlock()
	if err != nil {
		e.reset(s)
		return
	}
	e.copy(s, kindData)
}

// small is what streams are read into until one fills it.
var small = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// copy sends what comes from a stream's connection, the first of it as a frame
// of that kind.
func (e *end) copy(s *stream, kind byte) {
	little := small.Get().(*[4 << 10]byte)
	defer small.Put(little)
	for b := little[:]; ; kind = kindData {
		n, err := s.conn.Read(b[headerSize:])
		if errors.Is(err, io.EOF) && kind != kindOpen {
			putHeader(b, s.id, kindEnd, 0)
			_ = e.send(b[:headerSize]) // a link that is broken ends all of its streams
			s.mu.Lock()
			if s.readOver = true; s.writeOver {
				e.finish(s)
			}
			s.mu.Unlock()
			return
		}
		if err != nil {
			e.reset(s)
			return
		}
		putHeader(b, s.id, kind, n)
		if e.send(b[:headerSize+n]) != nil {
			return
		}
		if headerSize+n == len(b) && len(b) < e.most {
			b = make([]byte, e.most)
		}
	}
}

// stream takes a frame of a stream.
func (e *end) stream(kind byte, id uint32, b []byte) {
	if kind == kindOpen {
		s := &stream{id: id, early: append([]byte(nil), b...)}
		e.begin(s, func() { e.dial(s) })
		return
	}
	e.tables.Lock()
	s := e.streams[id]
	e.tables.Unlock()
	if s == nil {
		return // it was reset here
	}
	s.mu.Lock()
	conn := s.conn
	switch {
	case kind == kindReset || kind == kindEnd && s.readOver:
		e.finish(s)
	case kind == kindEnd:
		if s.writeOver = true; conn != nil {
			conn.CloseWrite()
		}
	case conn == nil:
		s.early = append(s.early, b...)
	}
	s.mu.Unlock()
	if kind == kindData && conn != nil {
		if _, err := conn.Write(b); err != nil {
			e.reset(s)
		}
	}
}

// finish ends a stream at this end, and reports whether it had not ended. The
// caller holds its mu.
func (e *end) finish(s *stream) bool {
	if s.gone {
		return false
	}
	s.gone = true
	e.tables.Lock()
	delete(e.streams, s.id)
	e.tables.Unlock()
	e.open.Add(-1)
	if s.conn != nil {
		s.conn.Close()
	}
	return true
}

// reset ends a stream at both ends.
func (e *end) reset(s *stream) {
	s.mu.Lock()
	first := e.finish(s)
	s.mu.Unlock()
	if first {
		var b [headerSize]byte
		putHeader(b[:], s.id, kindReset, 0)
		_ = e.send(b[:]) // a link that is broken ends all of its streams
	}
}

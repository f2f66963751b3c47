package mux

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"adit/internal/lend"
)

// Windows: the initial one is yamux's; a stream that is read as fast as data arrives is granted up
// to maxWindow.
const (
	initialWindow = 256 << 10
	maxWindow     = 16 << 20
)

// Stream is one reliable byte stream of a session.
type Stream struct {
	session *Session
	id      uint32
	local   bool // opened by us

	readable chan struct{} // the state of reading has changed
	writable chan struct{} // pending was taken, or the state of writing has changed
	readMu   sync.Mutex    // one Read at a time
	writeMu  sync.Mutex    // one Write at a time

	direct sync.Mutex       // taken before all others
	taker  func([]byte) int // of a reader that waits; see ReadDirect

	// Guarded by session.mu.
	pending       []byte // of the Write under way, which alone gives it up: not yet in a frame
	inRing        bool
	opened        bool // the peer knows of it
	acked         bool
	finSent       bool
	sendWindow    uint32
	writeErr      error
	writeDeadline time.Time

	rmu          sync.Mutex // taken after session.mu, if both are
	chunks       []chunk    // received and not yet read, each from chunkPool
	length       int
	finReceived  bool
	readErr      error
	readDeadline time.Time
	window       uint32 // granted to the peer as a whole
	credit       uint32 // what the peer may still send
	arriving     uint32 // of the frame that is being received: not in chunks yet
	updated      time.Time
}

func newStream(s *Session, id uint32, local bool) *Stream {
	return &Stream{
		session: s, id: id, local: local,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
		opened: !local, acked: !local,
		sendWindow: initialWindow, window: initialWindow, credit: initialWindow,
	}
}

// Read reads what has arrived. Data from before the session's end, or before the peer's CloseWrite,
// can still be read afterwards.
func (st *Stream) Read(b []byte) (int, error) { return st.ReadDirect(b, nil) }

// ReadDirect is like Read, but while it waits, arriving data is passed to take, in order, by the
// goroutine that reads the connection; it returns what take did not take. take must not block or
// call the stream.
func (st *Stream) ReadDirect(b []byte, take func([]byte) int) (int, error) {
	return st.receive(b, nil, take)
}

// ReadLent is like ReadDirect into memory that l lends. It borrows the memory only once there is
// data to return; while it waits, it has none.
func (st *Stream) ReadLent(l *lend.Buffer, take func([]byte) int) (int, error) {
	return st.receive(nil, l, take)
}

// receive reads into b, or into memory that l lends if l is set.
func (st *Stream) receive(b []byte, l *lend.Buffer, take func([]byte) int) (int, error) {
	st.readMu.Lock()
	defer st.readMu.Unlock()
	for {
		n, deadline, err := st.take(b, l)
		if n > 0 || err != nil || l == nil && len(b) == 0 {
			return n, err
		}
		st.setTaker(take)
		err = wait(st.readable, deadline)
		st.setTaker(nil)
		if err != nil {
			return 0, err
		}
	}
}

func (st *Stream) setTaker(take func([]byte) int) {
	st.direct.Lock()
	defer st.direct.Unlock()
	st.taker = take
}

// offer passes received data to a reader that takes it directly, and returns how much it took.
func (st *Stream) offer(b []byte) int {
	st.direct.Lock()
	defer st.direct.Unlock()
	if st.taker == nil {
		return 0
	}
	st.rmu.Lock()
	next := st.length == 0 && st.readErr == nil && (st.readDeadline.IsZero() || st.readDeadline.After(time.Now()))
	st.rmu.Unlock()
	if !next {
		return 0
	}
	n := st.taker(b)
	st.rmu.Lock()
	st.arriving -= uint32(n)
	grant := st.grant()
	st.rmu.Unlock()
	if grant > 0 {
		st.update(grant)
	}
	return n
}

// grant returns how much of the window has been used and read and is to be granted again: half of
// the window at a time. It is called with rmu held.
func (st *Stream) grant() uint32 {
	grant := int64(st.window) - int64(st.credit) - int64(st.length) - int64(st.arriving)
	if st.finReceived || grant < int64(st.window/2) { // less than none if the window has shrunk
		return 0
	}
	return uint32(grant)
}

// take reads without waiting; neither bytes nor an error means that there is nothing yet.
func (st *Stream) take(b []byte, l *lend.Buffer) (int, time.Time, error) {
	sessionErr := st.session.endedErr()
	st.rmu.Lock()
	deadline := st.readDeadline
	switch {
	case !deadline.IsZero() && !deadline.After(time.Now()):
		st.rmu.Unlock()
		return 0, deadline, os.ErrDeadlineExceeded
	case st.readErr != nil:
		defer st.rmu.Unlock()
		return 0, deadline, st.readErr
	case st.length == 0 && st.finReceived:
		st.rmu.Unlock()
		return 0, deadline, io.EOF
	case st.length == 0:
		st.rmu.Unlock()
		return 0, deadline, sessionErr
	}
	if l != nil {
		b = l.Lend()
	}
	n := 0
	for n < len(b) && len(st.chunks) > 0 {
		first := &st.chunks[0]
		n += first.read(b[n:])
		if first.from == first.to {
			giveMemory(first.mem)
			first.mem = nil
			st.chunks = st.chunks[1:]
		}
	}
	if len(st.chunks) == 0 {
		st.chunks = nil
	}
	st.length -= n
	st.session.buffered.Add(-int64(n))
	grant := st.grant()
	st.rmu.Unlock()
	if grant > 0 {
		st.update(grant)
	}
	return n, deadline, nil
}

// roundTripAge is how old a round-trip measurement may be while windows depend on it.
const roundTripAge = time.Second

// update grants the peer more to send, and a larger window if the stream used half of its own
// within a few round trips, as far as memory allows. The round trip is the current one: it includes
// queues on the path and delays while TCP retransmits.
func (st *Stream) update(grant uint32) {
	s := st.session
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[st.id] != st {
		return
	}
	quick := 4 * max(10*time.Millisecond, time.Duration(s.rtt.Load()), s.lastRTT)
	st.rmu.Lock()
	window := int64(st.window)
	if now.Sub(st.updated) < quick {
		window *= 2
	}
	window = min(window, int64(s.mostWindow()))
	grant = uint32(max(0, int64(grant)+window-int64(st.window)))
	st.window, st.updated = uint32(window), now
	st.credit += grant
	st.rmu.Unlock()
	if grant > 0 { // else the window has become smaller
		s.appendControl(typeWindow, st.openFlag(), st.id, grant)
	}
	if now.Sub(s.pinged) > roundTripAge {
		s.ping()
	}
}

// openFlag is the flag of the first frame. It is called with session.mu held.
func (st *Stream) openFlag() uint16 {
	if st.opened {
		return 0
	}
	st.opened = true
	return flagSYN
}

// Write returns when all of b is on its way to the connection.
func (st *Stream) Write(b []byte) (int, error) {
	st.writeMu.Lock()
	defer st.writeMu.Unlock()
	s := st.session
	s.mu.Lock()
	st.pending = b
	st.begin()
	for {
		n := len(b) - len(st.pending)
		if n == len(b) {
			st.pending = nil
			s.mu.Unlock()
			return n, nil
		}
		var err error
		switch {
		case st.writeErr != nil:
			err = st.writeErr
		case s.err != nil:
			err = s.err
		case !st.live():
			err = os.ErrDeadlineExceeded
		}
		if err != nil {
			st.pending = nil
			s.mu.Unlock()
			return n, err
		}
		s.enqueue(st)
		deadline := st.writeDeadline
		s.mu.Unlock()
		err = wait(st.writable, deadline)
		s.mu.Lock()
		if err != nil {
			n := len(b) - len(st.pending)
			st.pending = nil
			s.mu.Unlock()
			return n, err
		}
	}
}

// begin moves as much of a Write into frames as possible if nobody is ahead of it, so that nobody
// needs to be woken for room that already exists. It is called with session.mu held, which is
// released while it writes.
func (st *Stream) begin() {
	s := st.session
	for len(st.pending) > 0 && st.writeErr == nil && s.err == nil && len(s.ring) == 0 && !s.left && st.live() {
		size := len(st.pending)
		now := st.opened && s.writesNow(size) // what opens a stream has more behind it
		s.fillFrom(st)
		if len(s.out) == 0 {
			return // no window
		}
		if !now {
			s.wakeWriter()
			return
		}
		s.writeNow(size >= bulkLeast)
	}
}

// live reports whether the write deadline is still ahead. It is called with session.mu held.
func (st *Stream) live() bool {
	return st.writeDeadline.IsZero() || st.writeDeadline.After(time.Now())
}

// enqueue makes the writer serve the stream in turn. It is called with mu held.
func (s *Session) enqueue(st *Stream) {
	if st.inRing || len(st.pending) == 0 || st.sendWindow == 0 {
		return
	}
	st.inRing = true
	s.ring = append(s.ring, st)
	s.wakeWriter()
}

// CloseWrite ends the sending direction: the peer reads io.EOF.
func (st *Stream) CloseWrite() error {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.writeErr == nil && s.err != nil {
		return s.err
	}
	st.finish()
	return nil
}

// finish sends the end of the stream, once. It is called with session.mu held.
func (st *Stream) finish() {
	if st.finSent || st.writeErr != nil {
		return
	}
	s := st.session
	st.finSent = true
	st.writeErr = net.ErrClosed
	s.appendControl(typeWindow, st.openFlag()|flagFIN, st.id, 0)
	notify(st.writable)
	st.rmu.Lock()
	over := st.finReceived
	st.rmu.Unlock()
	if over {
		s.drop(st)
	}
}

// Close ends both directions: the peer reads what was written and then io.EOF. The peer's writes
// fail, even one that waits for a window that nobody will grant.
func (st *Stream) Close() error {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	st.finish()
	if s.err == nil && s.streams[st.id] == st { // the peer has not ended its direction
		s.appendControl(typeWindow, flagRST, st.id, 0)
		s.drop(st)
	}
	st.discard(net.ErrClosed)
	return nil
}

// Reset abandons the stream in both directions.
func (st *Stream) Reset() {
	s := st.session
	s.mu.Lock()
	if s.err == nil && s.streams[st.id] == st {
		if st.opened {
			s.appendControl(typeWindow, flagRST, st.id, 0)
		}
		s.drop(st)
	}
	st.fail(net.ErrClosed, net.ErrClosed)
	s.mu.Unlock()
}

// fail ends both directions on this side. It is called with session.mu held.
func (st *Stream) fail(readErr, writeErr error) {
	if st.writeErr == nil {
		st.writeErr = writeErr
	}
	notify(st.writable)
	st.discard(readErr)
}

// discard drops what was received; reads return err.
func (st *Stream) discard(err error) {
	st.rmu.Lock()
	if st.readErr == nil {
		st.readErr = err
	}
	for _, c := range st.chunks {
		giveMemory(c.mem)
	}
	st.session.buffered.Add(-int64(st.length))
	st.chunks, st.length = nil, 0
	st.rmu.Unlock()
	notify(st.readable)
}

// LocalAddr returns the session's local address.
func (st *Stream) LocalAddr() net.Addr { return st.session.LocalAddr() }

// RemoteAddr returns the session's remote address.
func (st *Stream) RemoteAddr() net.Addr { return st.session.RemoteAddr() }

// SetDeadline sets both deadlines.
func (st *Stream) SetDeadline(t time.Time) error {
	_ = st.SetReadDeadline(t) // never fails
	return st.SetWriteDeadline(t)
}

// SetReadDeadline also ends a Read in progress.
func (st *Stream) SetReadDeadline(t time.Time) error {
	st.rmu.Lock()
	st.readDeadline = t
	st.rmu.Unlock()
	notify(st.readable)
	return nil
}

// SetWriteDeadline also ends a Write in progress.
func (st *Stream) SetWriteDeadline(t time.Time) error {
	st.session.mu.Lock()
	st.writeDeadline = t
	st.session.mu.Unlock()
	notify(st.writable)
	return nil
}

// wait returns nil when ch has a value, which may only mean that the deadline changed.
func wait(ch chan struct{}, deadline time.Time) error {
	if deadline.IsZero() {
		<-ch
		return nil
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-ch:
		return nil
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

func (s *Session) endedErr() error {
	select {
	case <-s.done:
		return s.Err()
	default:
		return nil
	}
}

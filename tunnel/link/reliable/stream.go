package reliable

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"adit/internal/lend"
)

// Stream is one reliable byte stream. It is a net.Conn whose addresses are placeholders; the code
// that wraps it supplies the real ones.
type Stream struct {
	s        *Session
	id       uint64
	priority bool

	reads, writes sync.Mutex // one Read and one Write at a time; taken before the session's lock

	// Everything below is guarded by the session's lock.
	readable, writable sync.Cond
	next               *Stream // in its queue
	queued             *streamQueue
	nextControl        *Stream
	inControl          bool
	credit             int  // bytes until its turn ends
	announced          bool // put before AcceptStream
	accepted           bool // returned by it

	// Sending: bytes below base are acknowledged, below sent were sent once, below end were
	// written.
	out                            buffer
	base, sentTo, end              uint64
	allowed                        uint64
	acked, again                   intervals
	ahead                          uint64 // bytes in acked
	copyingOut                     bool
	finWanted, finSent, finAcked   bool
	finArrived                     bool
	resetWanted, resetPending      bool
	resetAcked, stopped, starvedIn bool
	writeDeadline                  deadline

	// Receiving: bytes below read were taken; those below the end of in's first span can be.
	in                         buffer
	have                       pieces
	read, highest, granted     uint64
	window                     uint64
	grownAt                    time.Duration
	finalSize                  uint64
	finKnown, gone, closedRead bool // gone: reset by the peer
	stopPending, tellWindow    bool
	copyingIn                  bool
	taker                      func([]byte) int // of a reader that waits; see ReadDirect
	taking                     bool             // it is being called
	finished                   bool             // receiving is over
	givenUp                    bool             // its reader left too much unread
	readDeadline               deadline
}

// deadline wakes a condition when its time has come.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) set(s *Session, at time.Time, c *sync.Cond) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			c.Broadcast()
		})
	}
	c.Broadcast()
}

func (s *Session) newStream(id uint64) *Stream {
	st := &Stream{
		s:       s,
		id:      id,
		allowed: initialStreamWindow,
		granted: initialStreamWindow,
		window:  initialStreamWindow,
		grownAt: s.now(),
	}
	st.readable.L, st.writable.L = &s.mu, &s.mu
	s.streams[id] = st
	return st
}

// ID returns the stream's number on the wire.
func (st *Stream) ID() uint64 { return st.id }

// SetPriority lets the stream's data leave before that of other streams.
func (st *Stream) SetPriority(first bool) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.priority = first
}

// available returns how far the stream has arrived without a gap.
func (st *Stream) available() uint64 {
	if st.have.n > 0 && st.have.first().lo <= st.read {
		return max(st.read, st.have.first().hi)
	}
	return st.read
}

// Read reads what has arrived.
func (st *Stream) Read(b []byte) (int, error) { return st.ReadDirect(b, nil) }

// ReadDirect is like Read, but while it waits, arriving data is passed to take, in order, and it
// keeps waiting; it returns what take did not take. take runs on the goroutine that reads packets,
// so it must not block or call the stream; it returns how many bytes it took. It is not called
// after ReadDirect has returned.
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
	st.reads.Lock()
	defer st.reads.Unlock()
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if st.taking {
			st.readable.Wait()
			continue
		}
		ready := st.available() - st.read
		switch {
		case st.givenUp:
			return 0, ErrReset
		case st.closedRead:
			return 0, net.ErrClosed
		case st.gone:
			return 0, ErrReset
		case st.readDeadline.passed():
			return 0, os.ErrDeadlineExceeded
		case ready > 0:
			if l != nil {
				b = l.Lend()
			}
			if len(b) == 0 {
				return 0, nil
			}
			return st.take(b[:min(uint64(len(b)), ready)]), nil
		case st.finKnown && st.read == st.finalSize:
			return 0, io.EOF
		case s.err != nil:
			return 0, s.err
		case l == nil && len(b) == 0:
			return 0, nil
		}
		st.taker = take
		st.readable.Wait()
		st.taker = nil // what has come is read here: nobody else may take the same
	}
}

// take copies arrived bytes into b without holding the lock, and gives their window back. The
// caller holds the lock.
func (st *Stream) take(b []byte) int {
	s := st.s
	var parts [copyBlocks + 1][]byte
	n, off, hi := 0, st.read, st.read+uint64(len(b))
	for ; n < copyBlocks && off < hi; n++ {
		parts[n] = st.in.slice(off, hi)
		off += uint64(len(parts[n]))
	}
	st.copyingIn = true
	s.mu.Unlock()
	count := 0
	for _, p := range parts[:n] {
		count += copy(b[count:], p)
	}
	s.mu.Lock()
	st.took(count)
	return count
}

// took records that a reader has copied that many bytes, and reports whether the stream is still
// read.
func (st *Stream) took(count int) bool {
	s := st.s
	st.copyingIn = false
	if st.finished { // reset or closed meanwhile; its bytes are accounted for
		st.in.reset()
		return false
	}
	st.read += uint64(count)
	s.consume(uint64(count))
	st.in.release(st.read)
	st.renewWindow()
	if st.have.n == 1 && st.have.first().hi == st.read {
		st.in.reset() // an idle stream holds no memory
	}
	if st.finKnown && st.read == st.finalSize {
		st.finishReading()
	}
	return true
}

// renewWindow allows the peer to send more once half of the window is used up, and doubles the
// window of a reader that uses it up fast.
func (st *Stream) renewWindow() {
	if st.finKnown || st.granted-st.read > st.window/2 {
		return
	}
	s := st.s
	now := s.now()
	if now-st.grownAt < 4*max(s.rtt.smoothed, granularity) {
		st.window *= 2
	}
	st.window = min(st.window, s.mostWindow())
	st.grownAt = now
	st.granted = max(st.granted, st.read+st.window)
	st.tellWindow = true
	s.controls(st)
}

// Write queues b for sending. It waits while too much of the stream's data is waiting for the peer.
func (st *Stream) Write(b []byte) (int, error) {
	st.writes.Lock()
	defer st.writes.Unlock()
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		switch {
		case s.err != nil:
			return written, s.err
		case st.givenUp:
			return written, ErrReset
		case st.finWanted || st.resetWanted && !st.stopped:
			return written, net.ErrClosed
		case st.stopped:
			return written, ErrReset
		case st.writeDeadline.passed():
			return written, os.ErrDeadlineExceeded
		case written == len(b):
			return written, nil
		}
		room := st.room()
		if room <= 0 {
			st.writable.Wait()
			continue
		}
		written += st.put(b[written:min(len(b), written+room)])
	}
}

// put copies some of b after what is written, without holding the lock, and returns how much of it
// is written.
func (st *Stream) put(b []byte) int {
	var parts [copyBlocks + 1][]byte
	n := st.lay(&parts, len(b))
	st.s.mu.Unlock()
	count := 0
	for _, p := range parts[:n] {
		count += copy(p, b[count:])
	}
	st.s.mu.Lock()
	return st.laid(count)
}

// lay makes room for some of size bytes after what is written. They are copied into its parts until
// laid is called for all of them. It returns how many parts there are.
func (st *Stream) lay(parts *[copyBlocks + 1][]byte, size int) (n int) {
	off, hi := st.end, st.end+uint64(size)
	hi = min(hi, (off/blockSize+copyBlocks)*blockSize)
	st.out.ensure(st.base, hi)
	st.s.laying += int64(hi - off)
	for ; off < hi; n++ {
		parts[n] = st.out.slice(off, hi)
		off += uint64(len(parts[n]))
	}
	st.copyingOut = true
	return n
}

// laid counts what was laid as written, unless the stream was reset or ended in the meantime: its
// end may be on its way, with nothing after it.
func (st *Stream) laid(count int) int {
	s := st.s
	st.copyingOut = false
	s.laying -= int64(count)
	if st.resetWanted || st.finWanted {
		if st.base == st.end {
			st.out.reset()
		}
		return 0
	}
	st.end += uint64(count)
	s.buffered += int64(count)
	s.activate(st)
	s.sendNow()
	return count
}

// CloseWrite ends the sending direction: the peer reads io.EOF after what was written.
func (st *Stream) CloseWrite() error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.s.err != nil {
		return st.s.err
	}
	st.endWriting()
	return nil
}

func (st *Stream) endWriting() {
	if st.finWanted || st.resetWanted {
		return
	}
	st.finWanted = true
	st.writable.Broadcast()
	st.s.activate(st)
	st.s.wake()
}

// Close ends both directions. What was written is still delivered while the session is alive.
func (st *Stream) Close() error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.s.err != nil {
		return nil
	}
	st.endWriting()
	first := !st.closedRead
	st.stopReading()
	st.dropTimers()
	if first && st.base < st.end {
		st.s.closing(st)
	}
	return nil
}

// Reset abandons the stream in both directions; what was written may be lost.
func (st *Stream) Reset() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.s.err != nil {
		return
	}
	st.resetWriting()
	st.stopReading()
	st.dropTimers()
}

func (st *Stream) dropTimers() {
	st.readDeadline.set(st.s, time.Time{}, &st.readable)
	st.writeDeadline.set(st.s, time.Time{}, &st.writable)
}

// stopReading drops what has arrived and tells the peer to stop sending.
func (st *Stream) stopReading() {
	if st.closedRead {
		return
	}
	st.closedRead = true
	if !st.finished {
		if !st.finKnown || !st.complete() {
			st.stopPending = true
			st.s.controls(st)
		}
		st.discard()
	}
	st.readable.Broadcast()
	st.settle()
}

// resetWriting drops what was written and tells the peer.
func (st *Stream) resetWriting() {
	if st.resetWanted || st.finAcked {
		return
	}
	s := st.s
	st.resetWanted, st.resetPending = true, true
	s.buffered -= int64(st.end - st.base)
	st.base, st.end = st.sentTo, st.sentTo
	st.again, st.acked, st.ahead = nil, nil, 0
	if !st.copyingOut {
		st.out.reset()
	}
	st.writable.Broadcast()
	s.controls(st)
	s.wake()
}

// SetDeadline sets both deadlines.
func (st *Stream) SetDeadline(t time.Time) error {
	_ = st.SetReadDeadline(t) // never fails
	return st.SetWriteDeadline(t)
}

// SetReadDeadline makes reads fail at t.
func (st *Stream) SetReadDeadline(t time.Time) error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.readDeadline.set(st.s, t, &st.readable)
	return nil
}

// SetWriteDeadline makes writes fail at t.
func (st *Stream) SetWriteDeadline(t time.Time) error {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.writeDeadline.set(st.s, t, &st.writable)
	return nil
}

// Addr stands for a stream's end if the carrier's addresses are not known.
type Addr struct{}

// Network returns "stream".
func (Addr) Network() string { return "stream" }
func (Addr) String() string  { return "stream" }

// LocalAddr returns an Addr.
func (st *Stream) LocalAddr() net.Addr { return Addr{} }

// RemoteAddr returns an Addr.
func (st *Stream) RemoteAddr() net.Addr { return Addr{} }

var _ net.Conn = (*Stream)(nil)

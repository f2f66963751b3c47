// Package mux carries many streams and unreliable messages over one reliable connection, in the
// wire format of yamux (version 0). It differs from hashicorp/yamux in what the format leaves to
// the implementation: streams are served in turn, half-close and reset are real, windows grow with
// the path, and the reserved stream 1 carries datagrams and the reason for the session's end. It
// knows nothing of TLS: the caller provides the connection.
package mux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/link/budget"
)

// Limits of a session, which are part of the protocol if both ends must know them.
const (
	// MaxDatagram is the size of the largest message for SendDatagram.
	MaxDatagram = 65535
	// Backlog is how many open streams the peer may not have accepted yet.
	Backlog = 1024
	// MaxReason is how much of a reason for closing is kept, in bytes.
	MaxReason = 512

	// RenewAfter is the stream number from which a session's owner should open a new session: half
	// of all numbers.
	RenewAfter = 1 << 31
	// lastID is the first number that is no longer used for opening a stream: numbers are unique in
	// a session, and go up by two.
	lastID = 1<<32 - 2
	// usedUp is the error of a session that has run out of stream numbers. Its owner makes another.
	usedUp = "its numbers of streams are used up"

	freeBuffered = 4 << 20   // bytes held without the budget
	maxControl   = 256 << 10 // bytes of control frames that may wait beyond a batch
	flushTimeout = time.Second
)

// Config configures a session. The errors are those of the calling package, and required.
type Config struct {
	// Client is true on the side that dialled.
	Client bool
	// MaxStreams is how many streams each side may have open. If zero, 16,384.
	MaxStreams int
	// PeerStreams is how many streams the peer may have open. If zero, MaxStreams.
	PeerStreams int
	// KeepAlive is the interval between pings on an idle session. If zero, 6 seconds. A session
	// that hears nothing for three intervals ends with Timeout.
	KeepAlive time.Duration
	// MaxBuffered is how many unread bytes the session holds, for all streams together, before it
	// resets the streams that hold most. If zero, 64 MiB.
	MaxBuffered int64
	// Budget bounds what may wait for readers in all sessions of a process together, in addition to
	// 4 MiB in each. If nil, there is no bound.
	Budget *budget.Budget
	// Timeout is the session's error if the peer goes silent.
	Timeout error
	// Reset is returned by reads and writes on a stream that the peer has reset.
	Reset error
	// TooLarge is returned by SendDatagram for messages larger than MaxDatagram.
	TooLarge error
	// PeerClosed makes the session's error from the reason that the peer gave.
	PeerClosed func(reason string) error
}

// Session is one multiplexed connection. All methods may be called from
// several goroutines.
type Session struct {
	conn  net.Conn
	eager eagerConn  // conn, if it can be written to without waiting; else nil
	waits unsentConn // conn, if it can be told how much may wait in it; else nil
	in    inbound    // the reader's
	cfg   Config

	accept    chan *Stream
	datagrams chan []byte // each from datagramPool
	serving   sync.Mutex
	handle    func([][]byte) // of ServeDatagrams; guarded by serving
	come      [][]byte       // for it; the reader's
	queuedIn  atomic.Int64
	buffered  atomic.Int64
	wake      chan struct{} // tells the writer that there is something to write
	stir      chan struct{} // tells watch that there is traffic
	done      chan struct{}
	finished  chan struct{} // closed when all goroutines have ended
	group     sync.WaitGroup

	lastReceived  atomic.Int64 // Unix nanoseconds
	sentSince     atomic.Bool  // more than a sign of life was sent since the peer was last heard
	dozing        atomic.Bool  // watch waits for long, and is to be stirred by traffic
	bytesSent     atomic.Uint64
	bytesReceived atomic.Uint64
	rtt           atomic.Int64 // smoothed, in nanoseconds; zero before the first ping's answer

	mu        sync.Mutex
	err       error
	flushing  bool // closed by us: what waits in out is still written
	streams   map[uint32]*Stream
	nextID    uint32
	peerID    uint32        // the highest number of the peer's streams
	local     int           // open streams of ours
	remote    int           // open streams of the peer's
	unacked   int           // streams of ours that the peer has not accepted
	free      chan struct{} // closed and renewed when a stream of ours may be opened
	out       []byte        // frames to be written next
	writing   bool          // somebody writes to conn
	left      bool          // eager has something to flush
	leftBulk  bool          // of bulk
	wroteAt   time.Time     // when the last write was over
	pace      pace
	ring      []*Stream // streams with bytes to send and window to send them in
	outgoing  [][]byte  // datagrams to be sent, each from datagramPool
	gathering int       // who gathers datagrams
	outBytes  int
	control   controlStream
	share     budget.Share
	pingID    uint32
	pinged    time.Time     // when the last ping was sent
	pinging   bool          // it is under way
	lastRTT   time.Duration // what it took there and back
}

// New starts a session on conn and takes ownership of it.
func New(conn net.Conn, cfg Config) *Session {
	if cfg.MaxStreams == 0 {
		cfg.MaxStreams = 16384
	}
	cfg.PeerStreams = cmp.Or(cfg.PeerStreams, cfg.MaxStreams)
	if cfg.KeepAlive == 0 {
		cfg.KeepAlive = 6 * time.Second
	}
	if cfg.MaxBuffered == 0 {
		cfg.MaxBuffered = 64 << 20
	}
	s := &Session{
		conn:      conn,
		in:        newInbound(conn),
		cfg:       cfg,
		accept:    make(chan *Stream, Backlog),
		datagrams: make(chan []byte, 256),
		wake:      make(chan struct{}, 1),
		stir:      make(chan struct{}, 1),
		done:      make(chan struct{}),
		finished:  make(chan struct{}),
		streams:   map[uint32]*Stream{},
		nextID:    2,
		free:      make(chan struct{}),
		control:   controlStream{window: initialWindow},
		pace:      pace{batch: newBatch},
		share:     budget.Share{Budget: cfg.Budget, Free: freeBuffered, Most: cfg.MaxBuffered},
	}
	if cfg.Client {
		s.nextID = 3
		s.out = appendHeader(s.out, typeWindow, flagSYN, controlID, 0)
		s.control.open = true
	}
	s.ping()
	s.eager, _ = conn.(eagerConn)
	if s.waits, _ = conn.(unsentConn); s.waits != nil {
		s.waits.LimitUnsent(s.pace.unsent())
	}
	s.lastReceived.Store(int64(monotime.Now()))
	s.group.Go(s.readLoop)
	s.group.Go(s.writeLoop)
	s.group.Go(s.watch)
	go func() {
		s.group.Wait()
		s.conn.Close()
		close(s.finished)
	}()
	return s
}

// OpenStream opens a stream; the peer learns of it with its first bytes. It waits while too many
// streams are open or not yet accepted.
func (s *Session) OpenStream(ctx context.Context) (*Stream, error) {
	for {
		s.mu.Lock()
		if s.err != nil {
			defer s.mu.Unlock()
			return nil, s.err
		}
		if s.nextID >= lastID {
			s.mu.Unlock()
			s.closeWith(usedUp, &endError{text: "session closed: " + usedUp})
			return nil, s.Err()
		}
		if s.local < s.cfg.MaxStreams && s.unacked < Backlog {
			st := newStream(s, s.nextID, true)
			s.nextID += 2
			s.local++
			s.unacked++
			s.streams[st.id] = st
			s.mu.Unlock()
			return st, nil
		}
		free := s.free
		s.mu.Unlock()
		select {
		case <-free:
		case <-s.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// AcceptStream waits for a stream that the peer opened.
func (s *Session) AcceptStream(ctx context.Context) (*Stream, error) {
	select {
	case st := <-s.accept:
		s.mu.Lock()
		if s.err == nil && s.streams[st.id] == st {
			s.appendControl(typeWindow, flagACK, st.id, 0)
		}
		s.mu.Unlock()
		return st, nil
	case <-s.done:
		return nil, s.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns why the session has ended, or nil while it is alive.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// LocalAddr returns the connection's local address.
func (s *Session) LocalAddr() net.Addr { return s.conn.LocalAddr() }

// RemoteAddr returns the connection's remote address.
func (s *Session) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// Stats is a snapshot of a session.
type Stats struct {
	RTT                      time.Duration
	LastReceived             time.Time
	KeepAlive                time.Duration
	BytesSent, BytesReceived uint64
	Streams                  int
	Highest                  uint32 // the highest number of a stream so far, either side's
}

// Stats returns the session's current figures.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	streams, highest := s.local+s.remote, max(s.nextID-2, s.peerID)
	s.mu.Unlock()
	return Stats{
		RTT:          time.Duration(s.rtt.Load()),
		LastReceived: monotime.At(time.Duration(s.lastReceived.Load())),
		// A ping goes out at each interval, and its answer takes a round trip.
		KeepAlive:     s.cfg.KeepAlive + max(2*time.Second, 2*time.Duration(s.rtt.Load())),
		BytesSent:     s.bytesSent.Load(),
		BytesReceived: s.bytesReceived.Load(),
		Streams:       streams,
		Highest:       highest,
	}
}

// endError is the end of a session for a cause other than the peer's request.
type endError struct {
	text  string
	cause error
}

func (e *endError) Error() string {
	if e.cause == nil {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}
func (e *endError) Unwrap() error        { return e.cause }
func (e *endError) Is(target error) bool { return target == net.ErrClosed }

// protocolError ends the session and is reported to the peer.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// Close ends the session and tells the peer why. It returns when the connection is closed, after
// one second at most.
func (s *Session) Close(reason string) error {
	s.closeWith(reason, &endError{text: "session closed: " + reason})
	<-s.finished
	return nil
}

// closeWith tells the peer the reason and ends the session on this side with err.
func (s *Session) closeWith(reason string, err error) {
	s.mu.Lock()
	if s.err == nil {
		s.appendReason(reason)
		s.flushing = true
		s.err = err
		s.conn.SetDeadline(time.Now().Add(flushTimeout))
		s.endLocked()
		return
	}
	s.mu.Unlock()
}

// end ends the session immediately.
func (s *Session) end(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	s.conn.SetDeadline(time.Now()) // wakes the reader and the writer
	s.endLocked()
}

// endLocked wakes everybody who waits. It is called with mu held, and releases it.
func (s *Session) endLocked() {
	close(s.done)
	streams := make([]*Stream, 0, len(s.streams))
	for _, st := range s.streams {
		streams = append(streams, st)
	}
	clear(s.streams)
	s.local, s.remote = 0, 0
	s.ring, s.outgoing = nil, nil
	s.mu.Unlock()
	s.wakeWriter()
	for _, st := range streams {
		notify(st.readable)
		notify(st.writable)
	}
}

func (s *Session) wakeWriter() { notify(s.wake) }

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// watch sends pings, and ends a session whose peer has gone silent. On an idle session it wakes
// once in a keep-alive interval, and not for the peer's pings.
func (s *Session) watch() {
	// Under traffic, a ping goes out after every second without an answer, so that a dead peer is
	// noticed sooner than on an idle session.
	const tick = time.Second
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-s.stir:
		case <-timer.C:
		}
		silent := monotime.Now() - time.Duration(s.lastReceived.Load())
		busy := s.sentSince.Load()
		wait := tick
		switch {
		case silent > 3*s.cfg.KeepAlive, busy && silent > 2*s.cfg.KeepAlive:
			s.end(s.cfg.Timeout)
			return
		case silent >= s.cfg.KeepAlive:
			s.Probe()
			wait = s.cfg.KeepAlive + tick/2 // by then it was answered an interval ago
		case busy && silent >= tick:
			s.Probe()
		case !busy:
			wait = s.cfg.KeepAlive - silent
		}
		if !busy {
			s.dozing.Store(true)
			if s.sentSince.Load() && s.dozing.CompareAndSwap(true, false) {
				wait = tick
			}
		} else {
			wait = tick
		}
		timer.Reset(wait)
	}
}

// traffic records that more than a sign of life was sent to the peer.
func (s *Session) traffic() {
	s.sentSince.Store(true)
	if s.dozing.Load() && s.dozing.CompareAndSwap(true, false) {
		notify(s.stir)
	}
}

// Probe immediately asks the peer for a sign of life.
func (s *Session) Probe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ping()
}

// ping asks for a sign of life, which is also how a session measures its round trip. It is called
// with mu held.
func (s *Session) ping() {
	if s.err != nil || s.pinging {
		return
	}
	s.pingID++
	s.pinging, s.pinged = true, time.Now()
	s.appendControl(typePing, flagSYN, 0, s.pingID)
}

// appendControl queues a frame without a body. It is called with mu held.
func (s *Session) appendControl(kind uint8, flags uint16, id, length uint32) {
	if s.err != nil {
		return
	}
	if len(s.out) > maxBatch+maxControl {
		// The peer causes answers but does not read them.
		err := &endError{text: "the peer does not read"}
		go s.end(err) // mu is held here
		return
	}
	if kind != typePing {
		s.traffic()
	}
	s.out = appendHeader(s.out, kind, flags, id, length)
	s.wakeWriter()
}

// drop forgets a stream that has ended in both directions. It is called with mu held.
func (s *Session) drop(st *Stream) {
	if s.streams[st.id] != st {
		return
	}
	delete(s.streams, st.id)
	if st.local {
		s.local--
		if !st.acked {
			s.unacked--
		}
		close(s.free)
		s.free = make(chan struct{})
	} else {
		s.remote--
	}
}

func (s *Session) heard() {
	s.lastReceived.Store(int64(monotime.Now()))
	s.sentSince.Store(false)
}

// lost makes the session's error from a failed read or write.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &endError{text: "the peer ended the connection"}
	}
	return &endError{text: "connection lost", cause: err}
}

// violation ends the session because the peer broke the protocol.
func (s *Session) violation(err protocolError) {
	s.closeWith(string(err), &endError{text: fmt.Sprintf("the peer broke the protocol: %s", string(err))})
}

package reliable

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"adit/tunnel/link/budget"
)

// Packet is one packet that arrived.
type Packet struct {
	Number uint64
	Data   []byte
	Time   time.Time // if zero, now
}

// Carrier moves packets. Each has a number higher than the one before, and arrives at most once.
type Carrier interface {
	// Room returns how many bytes the carrier needs before and after a packet.
	Room() (head, tail int)
	// Send sends packets with consecutive numbers and returns the first number. Each buffer
	// consists of head, plaintext and tail, and belongs to the session again afterwards.
	Send(packets [][]byte) (first uint64, err error)
	// Receive waits for packets. Their data is valid until the next Receive.
	Receive(into []Packet) (int, error)
	// MaxPayload returns how much plaintext fits into a UDP payload of the given size.
	MaxPayload(datagram int) int
	// PathChanged fires when the peer is reached over a different path from now on.
	PathChanged() <-chan struct{}
	// NextNumber returns the number of the next packet.
	NextNumber() uint64
	Close() error
}

// directCarrier is a Carrier that can deliver packets as they arrive, one call at a time and never
// while packets returned by Receive are in use.
type directCarrier interface {
	Direct(handle func([]Packet))
}

// Config configures a session. The zero value is usable on the accepting side.
type Config struct {
	// Initiator is set on the side that began the session, and on that side only.
	Initiator bool
	// Congestion names the congestion controller. If empty, BBR.
	Congestion Congestion
	// KeepAlive is how long the session may be silent before it asks the peer for a sign of life.
	// If zero, it adapts to what the NATs on the path tolerate.
	KeepAlive time.Duration
	// Timeout is how long the peer may leave packets unanswered. If zero, 3 seconds.
	Timeout time.Duration
	// MaxStreams is how many streams the peer may have open. If zero, 16,384.
	MaxStreams int
	// OwnStreams is how many streams this side may have open, whatever the peer
	// allows. If zero, 16,384.
	OwnStreams int
	// StreamWindow is how much of one stream may wait for its reader, at most. If zero, 16 MiB.
	// Windows start at 512 KiB and grow with the path.
	StreamWindow int
	// SessionWindow is the same for all streams together. If zero, 64 MiB. Beyond it, the streams
	// with the most waiting data are reset.
	SessionWindow int
	// SendBuffer is how much written data may wait for the peer in all streams together. If zero,
	// 64 MiB. Beyond it, each stream may have 64 KiB waiting, and less as more waits: at twice
	// SendBuffer, 4 KiB. Closed streams together may have no more than SendBuffer waiting; beyond
	// it, those that were closed first are reset.
	SendBuffer int
	// Budget bounds what may wait for readers in all sessions of a process together, in addition to
	// 4 MiB in each. If nil, there is no bound.
	Budget *budget.Budget
	// OnSuspect is called, from one goroutine, when two probes in a row were not answered: the time
	// to try another socket. It may be nil.
	OnSuspect func()
}

// What both sides assume about each other at the beginning.
const (
	initialStreamWindow  = 512 << 10
	initialSessionWindow = 4 << 20
	// sessionFlow is how much more may be sent than has arrived.
	sessionFlow    = 64 << 20
	initialStreams = 1024
)

func (c Config) withDefaults() Config {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Second
	}
	set(&c.MaxStreams, 16384)
	set(&c.OwnStreams, 16384)
	set(&c.StreamWindow, 16<<20)
	set(&c.SessionWindow, 64<<20)
	set(&c.SendBuffer, 64<<20)
	c.StreamWindow = max(c.StreamWindow, initialStreamWindow)
	c.SessionWindow = max(c.SessionWindow, initialSessionWindow)
	c.MaxStreams = max(c.MaxStreams, initialStreams)
	return c
}

// Session is one connection of streams and datagrams. All methods may be called
// from several goroutines.
type Session struct {
	carrier    Carrier
	cfg        Config
	start      time.Time
	head, tail int

	wg    sync.WaitGroup
	wakes chan struct{} // to the sender
	timer *time.Timer   // the sender's
	done  chan struct{}

	mu sync.Mutex
	// Waiting for a stream to open, for one to accept, for a datagram; each also ends with the
	// session.
	opening, accepting, arriving sync.Cond
	handle                       func([][]byte) // of ServeDatagrams
	handed                       [][]byte       // its list
	handling                     bool           // it is being called
	err                          error          // why the session ended
	goodbye                      []byte         // the CLOSE frame to send at the end
	sleeping                     bool           // the sender waits for a wake-up

	// Streams.
	streams                 map[uint64]*Stream
	nextLocal, nextRemote   uint64 // counts, not ids
	peerStreams, ourStreams uint64 // how many may ever be opened
	own                     int    // streams of ours that are not over
	remoteClosed            uint64 // streams of the peer that are over, and were accepted
	accepts                 []*Stream
	arrived                 []*Stream // whose readers take directly what came; of onPackets
	closed                  []*Stream // of which something waited for the peer when they were closed; some are over

	// Flow control of the session.
	sentData, peerData    uint64 // new stream bytes sent, and allowed
	recvData, recvAllowed uint64 // highest offsets received, and allowed
	consumed              uint64 // of recvData, what nobody holds any more
	pieces                int    // of what has come of streams, by the gaps between
	share                 budget.Share
	buffered              int64 // unacknowledged bytes of all streams
	laying                int64 // bytes that are being written to them
	tellData, tellStreams bool  // limits to be told
	pingPending           bool
	beside, fresh, queue  streamQueue // with frames beside data; served first; in turn
	starved               []*Stream   // want the session's window
	outbox, inbox         datagrams
	gathering             int  // who gathers datagrams
	datagramsLast         bool // the last packet was of datagrams

	// Sending.
	payload    int       // plaintext bytes of a full packet
	sending    bool      // the carrier sends a batch
	sentNow    sync.Cond // a sendNow is over
	batchFirst uint64
	batch      [][]byte
	late       struct { // an ACK that came while the packets that it acknowledges were being sent
		ranges []span
		delay  time.Duration
		at     time.Duration
	}
	keep          keepAlive
	control       controller
	pacer         pacer
	mtu           mtu
	lastEliciting time.Duration
	unanswered    time.Duration // when the first packet without any answer left
	limitedUntil  uint64        // rate samples until so much is delivered are the application's

	// Recovery.
	sent                   sentLog
	rtt                    rtt
	inFlight               int
	largestAcked           uint64
	delivered              uint64
	deliveredAt, firstSent time.Duration
	threshold              uint64 // packets
	reordering             time.Duration
	lossAt                 time.Duration
	ptoCount, probes       int
	suspected              bool
	repeats                repeats

	// Receiving.
	received      received
	newest        uint64        // the largest number received
	newestAt      time.Duration // and when
	ackCount      int           // packets since the last ACK that ask for one
	bulk          int           // such packets since the sender of them was last asked whether it lives
	active        bool          // the initiator has sent or received more than signs of life since it last asked
	ackNow        bool
	ackAt         time.Duration // when a delayed ACK is due
	ackRanges     []span
	frame         frame
	lastReceived  time.Duration
	bytesSent     uint64
	bytesReceived uint64
	packetsSent   uint64
	packetsRecv   uint64
	packetsLost   uint64
	rounds        uint64 // of the sender
}

// New makes a session over carrier, takes ownership of it, and starts sending and receiving. Close
// ends the session.
func New(carrier Carrier, cfg Config) *Session {
	cfg = cfg.withDefaults()
	s := &Session{
		carrier:     carrier,
		cfg:         cfg,
		start:       time.Now().Add(-time.Millisecond), // so that no time is zero
		wakes:       make(chan struct{}, 1),
		timer:       time.NewTimer(time.Hour),
		done:        make(chan struct{}),
		streams:     make(map[uint64]*Stream),
		peerStreams: initialStreams,
		ourStreams:  uint64(cfg.MaxStreams),
		tellStreams: cfg.MaxStreams > initialStreams,
		peerData:    initialSessionWindow,
		recvAllowed: initialSessionWindow,
		share:       budget.Share{Budget: cfg.Budget, Free: initialSessionWindow, Most: int64(cfg.SessionWindow)},
		threshold:   packetThreshold,
		keep:        newKeepAlive(cfg.KeepAlive),
	}
	s.head, s.tail = carrier.Room()
	s.opening.L, s.accepting.L, s.arriving.L, s.sentNow.L = &s.mu, &s.mu, &s.mu, &s.mu
	now := s.now()
	s.mtu.restart(now, baseDatagram)
	s.payload = carrier.MaxPayload(baseDatagram)
	s.control = newController(cfg.Congestion, baseDatagram)
	s.lastReceived = now
	if direct, ok := carrier.(directCarrier); ok {
		direct.Direct(s.onPackets)
	}
	s.wg.Go(s.sendLoop)
	s.wg.Go(s.receiveLoop)
	return s
}

// now returns the time since the session began.
func (s *Session) now() time.Duration { return time.Since(s.start) }

// wake makes the sender check for work. The caller holds mu.
func (s *Session) wake() {
	if s.sleeping {
		s.sleeping = false
		select {
		case s.wakes <- struct{}{}:
		default:
		}
	}
}

// end ends the session. If there is a goodbye, it is sent to the peer. The caller holds mu.
func (s *Session) end(err error, goodbye []byte) {
	if s.err != nil {
		return
	}
	s.err, s.goodbye = err, goodbye
	close(s.done)
	for _, st := range s.streams {
		st.readable.Broadcast()
		st.writable.Broadcast()
	}
	s.opening.Broadcast()
	s.accepting.Broadcast()
	s.arriving.Broadcast()
	s.share.Close()
	s.wake()
}

// violation ends a session whose peer broke the protocol.
func (s *Session) violation(code uint64, what string) error {
	err := &ProtocolError{Code: code, Reason: what}
	s.end(err, appendClose(nil, code, what))
	return err
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns why the session ended, or nil while it is alive.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session, tells the peer why, and waits for its goroutines. Data that streams have
// not delivered yet is lost.
func (s *Session) Close(reason string) error {
	s.mu.Lock()
	s.end(ErrClosed, appendClose(nil, codeNone, reason))
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// Probe immediately asks the peer for a sign of life, as after a wake-up.
func (s *Session) Probe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pingPending = true
	s.wake()
}

// Suspect reports whether probes have gone unanswered.
func (s *Session) Suspect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ptoCount >= 2
}

// OpenStream opens a stream. The peer learns of it with its first bytes. OpenStream waits while the
// peer's or this side's limit on open streams is reached.
func (s *Session) OpenStream(ctx context.Context) (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wait(ctx, &s.opening, func() bool { return s.nextLocal < s.peerStreams && s.own < s.cfg.OwnStreams }); err != nil {
		return nil, err
	}
	st := s.newStream(s.nextLocal<<2 | s.side())
	s.nextLocal++
	s.own++
	return st, nil
}

// AcceptStream waits for a stream that the peer opened.
func (s *Session) AcceptStream(ctx context.Context) (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wait(ctx, &s.accepting, func() bool { return len(s.accepts) > 0 }); err != nil {
		return nil, err
	}
	st := s.accepts[0]
	s.accepts[0] = nil
	s.accepts = s.accepts[1:]
	if st.accepted = true; s.streams[st.id] != st {
		s.peerStreamOver()
	}
	return st, nil
}

// side returns the lowest bit of the ids of streams that this side opens.
func (s *Session) side() uint64 {
	if s.cfg.Initiator {
		return 0
	}
	return 1
}

// wait waits on c until ready returns true, or the session or ctx ends. The caller holds mu.
func (s *Session) wait(ctx context.Context, c *sync.Cond, ready func() bool) error {
	var stop func() bool
	for {
		switch {
		case s.err != nil:
			return s.err
		case ctx.Err() != nil:
			return ctx.Err()
		case ready():
			return nil
		}
		if stop == nil {
			stop = context.AfterFunc(ctx, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				c.Broadcast()
			})
			defer stop()
		}
		c.Wait()
	}
}

// Stats is a snapshot of a session.
type Stats struct {
	RTT                      time.Duration
	LastReceived             time.Time
	KeepAlive                time.Duration
	BytesSent, BytesReceived uint64
	PacketsSent, PacketsLost uint64
	// Newest is the highest packet number received.
	Newest  uint64
	Streams int
	// Datagram is the UDP payload size of full packets.
	Datagram, InFlight int
}

// Stats returns the session's figures.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		RTT:           s.rtt.smoothed,
		LastReceived:  s.start.Add(s.lastReceived),
		KeepAlive:     s.silence() + s.cfg.Timeout,
		BytesSent:     s.bytesSent,
		BytesReceived: s.bytesReceived,
		PacketsSent:   s.packetsSent,
		PacketsLost:   s.packetsLost,
		Newest:        s.newest,
		Streams:       len(s.streams),
		Datagram:      s.mtu.size,
		InFlight:      s.inFlight,
	}
}

// Codes of a CLOSE frame, of RESET_STREAM and of STOP_SENDING.
const (
	codeNone        = 0x00
	codeFlowControl = 0x03
	codeStreamLimit = 0x04
	codeStreamState = 0x05
	codeFinalSize   = 0x06
	codeFrame       = 0x07
	codeProtocol    = 0x0a
	codeTimeout     = 0x0b
)

// Errors that callers branch on. All errors of a session that has ended match net.ErrClosed.
var (
	// ErrClosed is the error of a session that this side closed.
	ErrClosed error = &endError{"session closed"}
	// ErrTimeout is the error of a session whose peer went silent.
	ErrTimeout error = &endError{"the peer has gone silent"}
	// ErrDatagramTooLarge is returned by SendDatagram for messages larger than MaxDatagram.
	ErrDatagramTooLarge = errors.New("datagram is larger than the session carries")
	// ErrReset is returned by reads and writes on a stream that was reset.
	ErrReset = errors.New("stream reset by the peer")
)

type endError struct{ text string }

func (e *endError) Error() string        { return e.text }
func (e *endError) Is(target error) bool { return target == net.ErrClosed }

// carrierError is the error of a session whose carrier has failed; cause matches net.ErrClosed.
type carrierError struct{ cause error }

func (e *carrierError) Error() string { return "session ended below: " + e.cause.Error() }
func (e *carrierError) Unwrap() error { return e.cause }

// CloseError is the error of a session that the peer closed.
type CloseError struct {
	Code   uint64
	Reason string
}

func (e *CloseError) Error() string        { return "session closed by the peer: " + e.Reason }
func (e *CloseError) Is(target error) bool { return target == net.ErrClosed }

// ProtocolError is the error of a session whose peer broke the protocol.
type ProtocolError struct {
	Code   uint64
	Reason string
}

func (e *ProtocolError) Error() string        { return "session closed, the peer sent " + e.Reason }
func (e *ProtocolError) Is(target error) bool { return target == net.ErrClosed }

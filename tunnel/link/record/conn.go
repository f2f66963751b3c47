package record

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/udpbatch"
)

// Limits on data that waits for Receive: beyond them datagrams are dropped, as a congested network
// would. Until the keys exist, the data mostly comes from strangers, and the limit is much lower.
const (
	queueBuffers = 512
	queueBytes   = 4 << 20
	earlyBytes   = 256 << 10
)

// Conn is one DTLS session. At a time, one goroutine may call Send and one may call Receive; all
// other methods may be called concurrently. Receive must be called continuously, because it also
// answers the peer's path challenges and notices the session's end.
type Conn struct {
	cfg      Config
	isClient bool
	listener *Listener // nil at a client
	state    ConnectionState
	localCID []byte    // what the peer's records carry; set with ready
	farewell []byte    // at a listener: what tells the peer of the end that it did not hear of; set with ready, or nil
	since    time.Time // when there was a farewell

	// At a listener: the address and the random bytes of its ClientHello, and the previous session
	// at that address, while this one's handshake is in progress.
	firstAddr netip.AddrPort
	random    [32]byte
	before    *Conn         // guarded by the listener's mu
	routeKey  [cidSize]byte // the same

	at    atomic.Pointer[path] // the way to the peer
	moved chan struct{}
	news  chan struct{} // the same, for Moves

	sendMu sync.Mutex
	out    *half
	sent   atomic.Uint64 // application records and alerts sealed
	ctl    uint64        // messages about paths sealed

	ready  atomic.Bool // the handshake is done, and out and in are set
	feed   atomic.Pointer[feed]
	queue  chan *inbound
	queued atomic.Int64
	lost   atomic.Uint64
	// Used by the reader: repeated handshake messages passed to pion, and the handshake's outcome,
	// in bytes.
	handed, strange int

	direct  atomic.Pointer[func([]Packet)] // see Direct
	few     []Packet                       // what it is given
	opening sync.Mutex                     // of what follows: held by who opens records and hands them on
	holding bool                           // of Receive's goroutine: it has opening since its last call

	in        *half
	high, low window // application data; everything below base
	current   *inbound
	held      []*inbound // handed out, to be released at the next Receive
	datagram  []byte     // the rest of the datagram being read
	forged    uint64
	pending   challenge
	ending    error // the peer's alert, until all before it is handed out

	moving  atomic.Bool // unsure or trials are set
	moveMu  sync.Mutex
	unsure  *pathProbe   // of the current socket, which is not proven yet; or nil
	trials  []*pathProbe // of those that are asked beside it
	old     *socket      // the one before the current
	linger  *time.Timer  // closes old
	detours []*socket    // at a listener: those that have proven to be this session's

	end     sync.Once
	done    chan struct{}
	err     error // set before done is closed
	readers sync.WaitGroup
}

func newConn(cfg Config, isClient bool, sock *socket, remote udpbatch.Addr) *Conn {
	c := &Conn{
		cfg: cfg, isClient: isClient,
		moved: make(chan struct{}, 1),
		news:  make(chan struct{}, 1),
		queue: make(chan *inbound, queueBuffers),
		done:  make(chan struct{}),
	}
	c.at.Store(&path{sock, remote})
	return c
}

// Room returns how many bytes each buffer given to Send must have before and after its plaintext.
func (c *Conn) Room() (head, tail int) { return c.out.head, c.out.tail }

// MaxPayload returns how many bytes of plaintext fit into a datagram of the given size.
func (c *Conn) MaxPayload(datagram int) int { return datagram - c.out.head - c.out.tail }

// NextNumber returns the number of the first packet of the next Send.
func (c *Conn) NextNumber() uint64 { return c.sent.Load() }

// Send seals each packet in place and sends them as one batch. Each packet's plaintext lies between
// head and tail bytes of room (see Room). When Send returns, the buffers belong to the caller again
// and hold ciphertext. Packets are numbered consecutively from first, counting from zero: a
// packet's number is the record's own number less 2^40. Sending is fastest if the packets are of
// one size and lie next to each other in one slice, with the capacity of each extending over the
// rest. A datagram that the system cannot send is lost, as if the network had lost it; an error
// means that the session has ended.
func (c *Conn) Send(packets [][]byte) (first uint64, err error) {
	first, err = c.seal(packets, typeApplication)
	if err != nil {
		return first, err
	}
	return first, c.write(packets, c.at.Load())
}

func (c *Conn) seal(packets [][]byte, typ byte) (first uint64, err error) {
	select {
	case <-c.done:
		return 0, c.err
	default:
	}
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	first = c.sent.Load()
	if first+uint64(len(packets)) > maxSent {
		c.finish(ErrExhausted)
		return first, ErrExhausted
	}
	for _, p := range packets {
		if len(p) < c.out.head+c.out.tail || len(p) > largeBuffer {
			return first, fmt.Errorf("seal a record in a buffer of %d bytes: it needs %d for head and tail", len(p), c.out.head+c.out.tail)
		}
	}
	// The numbers are reserved before they are used, so that a failure in between cannot cause one
	// to be used twice.
	c.sent.Add(uint64(len(packets)))
	for i, p := range packets {
		c.out.seal(p, typ, epoch1|(base+first+uint64(i)))
	}
	return first, nil
}

// write sends sealed datagrams. If a Rebind closes the socket at the same time, they are lost,
// nothing more.
func (c *Conn) write(packets [][]byte, to *path) error {
	err := to.sock.conn.WriteBatch(packets, to.addr)
	if err == nil {
		return nil
	}
	select {
	case <-c.done:
		return c.err
	default:
	}
	if c.isClient && errors.Is(err, net.ErrClosed) && c.at.Load().sock == to.sock {
		c.finish(fmt.Errorf("send to %v: %w", to.addr.NetAddr(), err))
		return c.err
	}
	return nil
}

// sendAlert tells the peer of the session's end.
func (c *Conn) sendAlert(level, description byte) {
	if !c.ready.Load() {
		return
	}
	p := make([]byte, c.out.head+2+c.out.tail)
	p[c.out.head], p[c.out.head+1] = level, description
	if _, err := c.seal([][]byte{p}, typeAlert); err == nil {
		_ = c.write([][]byte{p}, c.at.Load())
	}
}

// enqueue passes a buffer to Receive. If too much is waiting, a server drops it; a client lets its
// socket's buffer fill up.
func (c *Conn) enqueue(in *inbound) {
	if c.handOver(in) {
		return
	}
	ready := c.ready.Load()
	most := int64(queueBytes)
	if !ready {
		most = earlyBytes
	}
	if c.queued.Add(int64(len(in.buf))) > most && (!c.isClient || !ready) {
		c.drop(in)
		return
	}
	select {
	case c.queue <- in:
		return
	default:
	}
	if !c.isClient || !ready {
		c.drop(in)
		return
	}
	select {
	case c.queue <- in:
	case <-c.done:
		c.drop(in)
	}
}

// Dropped returns how many buffers of datagrams were dropped because Receive was not called fast
// enough.
func (c *Conn) Dropped() uint64 { return c.lost.Load() }

func (c *Conn) drop(in *inbound) {
	c.lost.Add(1)
	c.queued.Add(-int64(len(in.buf)))
	in.release()
}

// PathChanged fires when this side's or the peer's address has changed and the new path has been
// found to work.
func (c *Conn) PathChanged() <-chan struct{} { return c.moved }

// Moves fires whenever PathChanged does, for a second listener.
func (c *Conn) Moves() <-chan struct{} { return c.news }

func (c *Conn) pathMoved() {
	for _, tell := range []chan struct{}{c.moved, c.news} {
		select {
		case tell <- struct{}{}:
		default:
		}
	}
}

// ConnectionState returns the result of the handshake.
func (c *Conn) ConnectionState() ConnectionState { return c.state }

// LocalAddr returns the address of this side's socket.
func (c *Conn) LocalAddr() net.Addr { return c.at.Load().sock.conn.LocalAddr() }

// RemoteAddr returns the peer's address, the last one that was found to work.
func (c *Conn) RemoteAddr() net.Addr { return c.at.Load().addr.NetAddr() }

// Offloads reports whether the socket sends with GSO and receives with GRO.
func (c *Conn) Offloads() (gso, gro bool) { return c.at.Load().sock.conn.Offloads() }

// Done is closed when the session has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil while the session is alive, and then why it ended.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close sends close_notify to the peer and ends the session. A client's socket is closed as well.
// When Close returns, no goroutine of the session is left.
func (c *Conn) Close() error {
	select {
	case <-c.done:
	default:
		c.sayEnd()
	}
	c.finish(errClosed)
	c.readers.Wait()
	return nil
}

// sayEnd tells the peer that nothing more comes from here. A client amid its handshake is
// told, too: it would go on repeating what nobody but this server understands.
func (c *Conn) sayEnd() {
	if c.ready.Load() || c.isClient {
		c.sendAlert(1, alertCloseNotify)
		return
	}
	// It is of epoch 0, and its number is later than all of pion's.
	_ = c.write([][]byte{{typeAlert, 0xfe, 0xfd, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 1, alertCloseNotify}}, c.at.Load())
}

// finish ends the session once; it starts nothing and waits for nothing.
func (c *Conn) finish(err error) {
	c.end.Do(func() {
		c.err = err
		close(c.done)
		if f := c.feed.Load(); f != nil {
			f.shut()
		}
		c.moveMu.Lock()
		c.stopProbes(nil)
		c.dropOld()
		socks := c.detours
		c.detours = nil
		if c.isClient {
			socks = append(socks, c.at.Load().sock)
		}
		c.moveMu.Unlock()
		if c.listener != nil {
			c.listener.forget(c)
		}
		for _, s := range socks {
			_ = s.conn.Close()
		}
	})
}

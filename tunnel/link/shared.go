package link

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"adit/internal/udpbatch"
	"adit/tunnel/link/record"
)

const (
	sharedQueue = 1024 // datagrams that wait to be read; more are lost, as in a socket
	sharedPeers = 8192 // whose paths are remembered
)

var sharedBuffers = sync.Pool{New: func() any { return new([2048]byte) }}

// sharedConn is the part of a UDP socket that is not DTLS, as a socket of its own.
type sharedConn struct {
	local net.Addr
	send  func([]byte, udpbatch.Addr) error
	queue chan sharedPacket
	done  chan struct{}
	once  sync.Once

	mu       sync.Mutex
	peers    map[netip.AddrPort]udpbatch.Addr // with our own address that each one uses
	deadline time.Time
	changed  chan struct{} // closed when the deadline is another
}

type sharedPacket struct {
	buf  *[2048]byte
	n    int
	from netip.AddrPort
}

func newSharedConn(local net.Addr) *sharedConn {
	return &sharedConn{
		local: local, queue: make(chan sharedPacket, sharedQueue), done: make(chan struct{}),
		peers: make(map[netip.AddrPort]udpbatch.Addr), changed: make(chan struct{}),
	}
}

// deliver is called by the reader of the socket. QUIC has no datagram larger
// than a path of 1,500 bytes takes unless both ends know better, which they
// cannot here.
func (c *sharedConn) deliver(p []byte, from udpbatch.Addr) {
	buf := sharedBuffers.Get().(*[2048]byte)
	if len(p) > len(buf) {
		sharedBuffers.Put(buf)
		return
	}
	c.mu.Lock()
	if known, ok := c.peers[from.AddrPort]; !ok || !known.SamePath(from) {
		if len(c.peers) >= sharedPeers {
			clear(c.peers)
		}
		c.peers[from.AddrPort] = from
	}
	c.mu.Unlock()
	select {
	case c.queue <- sharedPacket{buf, copy(buf[:], p), from.AddrPort}:
	default:
		sharedBuffers.Put(buf)
	}
}

func (c *sharedConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		c.mu.Lock()
		deadline, changed := c.deadline, c.changed
		c.mu.Unlock()
		var late <-chan time.Time
		var timer *time.Timer
		if !deadline.IsZero() {
			timer = time.NewTimer(time.Until(deadline))
			late = timer.C
		}
		stop := func() {
			if timer != nil {
				timer.Stop()
			}
		}
		select {
		case p := <-c.queue:
			stop()
			n := copy(b, p.buf[:p.n])
			sharedBuffers.Put(p.buf)
			return n, net.UDPAddrFromAddrPort(p.from), nil
		case <-c.done:
			stop()
			return 0, nil, net.ErrClosed
		case <-late:
			return 0, nil, os.ErrDeadlineExceeded
		case <-changed:
			stop()
		}
	}
}

func (c *sharedConn) WriteTo(b []byte, to net.Addr) (int, error) {
	select {
	case <-c.done:
		return 0, net.ErrClosed
	default:
	}
	u, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, net.InvalidAddrError("not an address of UDP")
	}
	ap := u.AddrPort()
	ap = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	c.mu.Lock()
	peer, known := c.peers[ap]
	c.mu.Unlock()
	if !known {
		peer = record.ForeignAddr(ap)
	}
	if err := c.send(b, peer); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (c *sharedConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

func (c *sharedConn) LocalAddr() net.Addr { return c.local }

func (c *sharedConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *sharedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// SetWriteDeadline does nothing: no write waits for long.
func (c *sharedConn) SetWriteDeadline(time.Time) error { return nil }

// SetReadBuffer and SetWriteBuffer do nothing: the socket's buffers are large.
func (c *sharedConn) SetReadBuffer(int) error  { return nil }
func (c *sharedConn) SetWriteBuffer(int) error { return nil }

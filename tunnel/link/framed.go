package link

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Limits of a framedConn.
const (
	// maxFramed is the size of the largest datagram; minFramed that of the smallest, a record's
	// header with a Connection ID.
	maxFramed = 16 << 10
	minFramed = 21
	// framedQueue is how many bytes may wait for the connection below, in addition to its own
	// buffers.
	framedQueue = 192 << 10
	// framedPatience is how long a sender waits for room in the queue before its datagram is
	// dropped, as in a congested network.
	framedPatience = 20 * time.Millisecond
	// framedStuck is how long the connection may accept nothing before it is ended; framedFlush
	// bounds the writing of queued data on close.
	framedStuck = 15 * time.Second
	framedFlush = time.Second
)

// framedConn carries datagrams in a stream, each preceded by its length in two bytes, big-endian.
// It is a net.PacketConn whose only peer address is the far end. If the stream breaks, what is sent
// is lost, and broke reports it.
type framedConn struct {
	conn net.Conn
	in   *bufio.Reader

	broke chan struct{} // closed when the stream broke
	once  sync.Once
	room  chan struct{} // there is room in the queue again

	mu      sync.Mutex
	more    sync.Cond
	pending []byte
	closed  bool
	err     error // why it broke
	lost    uint64
}

func newFramedConn(conn net.Conn) *framedConn {
	f := &framedConn{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10),
		broke: make(chan struct{}), room: make(chan struct{}, 1),
	}
	f.more.L = &f.mu
	return f
}

// run writes queued datagrams until the framedConn is closed or the stream breaks, then closes the
// stream.
func (f *framedConn) run() {
	var spare []byte
	for {
		f.mu.Lock()
		for len(f.pending) == 0 && !f.closed && f.err == nil {
			f.more.Wait()
		}
		batch, closed := f.pending, f.closed
		f.pending = spare[:0]
		if f.err != nil || len(batch) == 0 {
			f.mu.Unlock()
			f.conn.Close()
			return
		}
		if !closed { // Close has set a shorter one
			f.conn.SetWriteDeadline(time.Now().Add(framedStuck))
		}
		f.mu.Unlock()
		select {
		case f.room <- struct{}{}:
		default:
		}
		if _, err := f.conn.Write(batch); err != nil {
			f.fail(err)
		}
		spare = batch
	}
}

// fail records that the stream broke.
func (f *framedConn) fail(err error) {
	f.once.Do(func() {
		f.mu.Lock()
		f.err = err
		f.more.Signal()
		f.mu.Unlock()
		close(f.broke)
		f.conn.SetReadDeadline(time.Unix(1, 0))
	})
}

// WriteTo queues a datagram. If there is no room, it waits a little.
func (f *framedConn) WriteTo(b []byte, _ net.Addr) (int, error) {
	if len(b) > maxFramed {
		return len(b), nil // larger than the path takes
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && f.err == nil && len(f.pending)+2+len(b) > framedQueue {
		f.awaitRoom(2 + len(b))
	}
	switch {
	case f.closed:
		return 0, net.ErrClosed
	case f.err != nil || len(f.pending)+2+len(b) > framedQueue:
		f.lost++
		return len(b), nil
	}
	f.pending = binary.BigEndian.AppendUint16(f.pending, uint16(len(b)))
	f.pending = append(f.pending, b...)
	f.more.Signal()
	return len(b), nil
}

// awaitRoom waits until there is room for size bytes, or framedPatience has passed. The caller
// holds mu, which is released while waiting.
func (f *framedConn) awaitRoom(size int) {
	timer := time.NewTimer(framedPatience)
	defer timer.Stop()
	for late := false; !late && !f.closed && f.err == nil && len(f.pending)+size > framedQueue; {
		f.mu.Unlock()
		select {
		case <-f.room:
		case <-f.broke:
		case <-timer.C:
			late = true
		}
		f.mu.Lock()
	}
}

// ReadFrom returns the next datagram. Anything that is not a frame breaks the stream.
func (f *framedConn) ReadFrom(b []byte) (int, net.Addr, error) {
	var size [2]byte
	_, err := io.ReadFull(f.in, size[:])
	n := int(binary.BigEndian.Uint16(size[:]))
	switch {
	case err != nil:
	case n < minFramed || n > maxFramed || n > len(b):
		err = fmt.Errorf("a datagram of %d bytes", n)
	default:
		_, err = io.ReadFull(f.in, b[:n])
	}
	if err != nil {
		f.mu.Lock()
		closed := f.closed
		f.mu.Unlock()
		if !closed { // else what waits is still being written
			f.fail(err)
		}
		return 0, nil, net.ErrClosed
	}
	return n, f.conn.RemoteAddr(), nil
}

// Close stops reading immediately, and closes the stream once queued data is written.
func (f *framedConn) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return net.ErrClosed
	}
	f.closed = true
	f.conn.SetWriteDeadline(time.Now().Add(framedFlush))
	f.conn.SetReadDeadline(time.Unix(1, 0))
	f.more.Signal()
	return nil
}

// LocalAddr returns the stream's local address.
func (f *framedConn) LocalAddr() net.Addr { return f.conn.LocalAddr() }

// SetDeadline and the like are not supported; Close ends reading.
func (f *framedConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (f *framedConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (f *framedConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

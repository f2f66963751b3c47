package link

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"adit/internal/lend"
	"adit/internal/sockio"
	"adit/tunnel/link/mux"
)

// batchConn is a tls.Conn that passes each write to the connection below as one write. tls.Conn by
// itself would write every 16 KiB record separately.
type batchConn struct {
	*tls.Conn
	below  *joiningConn
	socket net.Conn
}

// newBatchConn returns a batchConn over conn; secure makes its tls.Conn.
func newBatchConn(conn net.Conn, secure func(net.Conn) *tls.Conn) *batchConn {
	below := &joiningConn{Conn: sockio.Wrap(conn), patient: true}
	below.eager, _ = below.Conn.(tryConn)
	limitUnsent(conn, mux.MaxUnsent)
	return &batchConn{secure(below), below, conn}
}

// LimitUnsent makes the system accept no more data while that many bytes wait there unsent.
func (c *batchConn) LimitUnsent(bytes int) { limitUnsent(c.socket, bytes) }

func (c *batchConn) Write(b []byte) (int, error) {
	c.below.join()
	n, err := c.Conn.Write(b)
	if flushErr := c.below.flush(); err == nil && flushErr != nil {
		return 0, flushErr
	}
	return n, err
}

// WriteNow is like Write but does not wait. What the connection has no room for is left for Flush,
// and left reports whether there is any; if so, Flush must come before the next write.
func (c *batchConn) WriteNow(b []byte) (left bool, err error) {
	c.below.join()
	_, err = c.Conn.Write(b)
	return c.below.tryFlush(), err
}

// ReadNow reads what has arrived, at most one record. It returns neither bytes nor an error if no
// record is complete yet. Only the reading goroutine may call it.
func (c *batchConn) ReadNow(b []byte) (int, error) {
	if c.below.eager == nil {
		return 0, nil
	}
	c.below.patient = false
	n, err := c.Conn.Read(b)
	c.below.patient = true
	if errors.Is(err, errNothingYet) {
		err = nil
	}
	return n, err
}

// errNothingYet is a timeout, because tls.Conn carries on where it was after one.
var errNothingYet error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing has come yet" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

// tryConn is a connection that can be used without blocking.
type tryConn interface {
	TryRead(b []byte) (int, error) // neither bytes nor an error: nothing is there
	TryWrite(b []byte) int
}

// Flush writes what WriteNow has left.
func (c *batchConn) Flush() error { return c.below.flush() }

// Close closes the connection below immediately. tls.Conn's Close would first notify the peer,
// which takes five seconds if the peer does not read. Callers that have something to tell the peer
// use CloseWrite.
func (c *batchConn) Close() error { return c.below.Close() }

// joinPool holds the buffers of joiningConns, so that an idle one needs none.
var joinPool = lend.Pool[[]byte]{New: func() *[]byte { b := make([]byte, 0, 192<<10); return &b }}

// joiningConn collects what is written between join and flush, and passes it on as one write.
type joiningConn struct {
	net.Conn
	eager   tryConn // Conn, or nil
	patient bool    // reads wait; of the goroutine that reads

	mu  sync.Mutex // tls.Conn may answer a key update while it is written to
	buf *[]byte    // nil: nothing is being joined
}

func (c *joiningConn) Read(b []byte) (int, error) {
	if c.patient {
		return c.Conn.Read(b)
	}
	n, err := c.eager.TryRead(b)
	if n == 0 && err == nil {
		err = errNothingYet
	}
	return n, err
}

func (c *joiningConn) join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buf == nil { // else what WriteNow left comes first
		c.buf = joinPool.Get()
	}
}

func (c *joiningConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buf == nil {
		return c.Conn.Write(b)
	}
	*c.buf = append(*c.buf, b...)
	return len(b), nil
}

func (c *joiningConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.Conn.Write(*c.buf)
	c.release()
	return err
}

// tryFlush writes as much as it can without waiting, and reports whether something is left, which
// stays joined.
func (c *joiningConn) tryFlush() (left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.eager == nil {
		return true
	}
	n := c.eager.TryWrite(*c.buf)
	if n < len(*c.buf) {
		*c.buf = (*c.buf)[:copy(*c.buf, (*c.buf)[n:])]
		return true
	}
	c.release()
	return false
}

// release ends the joining. It is called with mu held.
func (c *joiningConn) release() {
	*c.buf = (*c.buf)[:0]
	joinPool.Put(c.buf)
	c.buf = nil
}

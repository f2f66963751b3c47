package link

import (
	"crypto/tls"
	"net"
	"sync"

	"adit/internal/sockio"
)

// batchConn is a tls.Conn whose writes reach the connection below as one write
// each: tls.Conn itself hands every record of 16 KiB down alone.
type batchConn struct {
	*tls.Conn
	below *joiningConn
}

// newBatchConn makes the tls.Conn over conn by secure.
func newBatchConn(conn net.Conn, secure func(net.Conn) *tls.Conn) *batchConn {
	below := &joiningConn{Conn: sockio.Wrap(conn)}
	return &batchConn{secure(below), below}
}

func (c *batchConn) Write(b []byte) (int, error) {
	c.below.join()
	n, err := c.Conn.Write(b)
	if flushErr := c.below.flush(); err == nil && flushErr != nil {
		return 0, flushErr
	}
	return n, err
}

// joinPool has the buffers of joiningConns, so that an idle one holds none.
var joinPool = sync.Pool{New: func() any { b := make([]byte, 0, 192<<10); return &b }}

// joiningConn keeps what is written between join and flush, for one write.
type joiningConn struct {
	net.Conn

	mu  sync.Mutex // tls.Conn may answer a key update while it is written to
	buf *[]byte    // nil: nothing is being joined
}

func (c *joiningConn) join() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = joinPool.Get().(*[]byte)
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
	buf := c.buf
	c.buf = nil
	_, err := c.Conn.Write(*buf)
	*buf = (*buf)[:0]
	joinPool.Put(buf)
	return err
}

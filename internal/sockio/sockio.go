// Package sockio reads and writes TCP connections without announcing each system call to Go's
// scheduler. A call on a non-blocking socket is short, but an announced one wakes the scheduler's
// monitor in an idle process, and the monitor then polls every 20 microseconds until the process is
// idle again; for a forwarded request, that costs more than the forwarding. Larger calls, in bulk
// transfers, take longer than that, and the monitor would take their processor away and let another
// thread continue. An occasional call is announced, so that the monitor never goes long without
// news of a busy process, and so is every call with more bytes than are ever read at a time.
package sockio

import (
	"net"
	"sync/atomic"

	"adit/internal/lend"
)

const (
	// most is the largest read or write that is not announced, in bytes. Copying as
	// much takes some 100 microseconds, for which its processor has no other work.
	most = lend.Huge
	// announceEvery is how many go unannounced in a row.
	announceEvery = 2048
)

// Conn is a TCP connection. It can be used like any net.Conn.
type Conn struct {
	*net.TCPConn
	in, out half
}

// New returns conn as a Conn, which takes ownership of it.
func New(conn *net.TCPConn) *Conn {
	c := &Conn{TCPConn: conn}
	c.setUp()
	return c
}

// A Peer is what connections to one place have learned of whoever answers there. They
// may share it.
type Peer struct {
	holds atomic.Bool // it holds a part of what it says back until the part before is acknowledged
}

// Wrap returns a Conn if conn is a TCP connection, else conn itself.
func Wrap(conn net.Conn) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		return New(tcp)
	}
	return conn
}

// Package sockio reads and writes TCP connections without telling Go's scheduler
// of each system call. Such a call on a socket that does not wait is over soon,
// but an announced one wakes the scheduler's monitor in a process that was idle,
// and the monitor then looks on, every 20 microseconds, until the process is
// idle again: for a request that is passed on, that costs more than the passing
// on. Larger ones, in bulk, take longer than that, and the monitor would take
// their processor away and have another thread go on with it. Now and then a
// call is announced, so that the monitor is never without news of a busy process
// for long, and so are those of more bytes than are ever read at a time.
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

// Conn is a TCP connection. It is used as any net.Conn.
type Conn struct {
	*net.TCPConn
	in, out half
}

// New returns conn as a Conn, which owns it from now on.
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

// Wrap returns a Conn if conn is a TCP connection, and conn itself if not.
func Wrap(conn net.Conn) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		return New(tcp)
	}
	return conn
}

// Package sockio reads and writes TCP connections a little at a time without
// telling Go's scheduler of each system call. Such a call on a socket that does
// not wait is over at once, but an announced one wakes the scheduler's monitor
// in a process that was idle, and the monitor then looks on, every 20
// microseconds, until the process is idle again: for a request that is passed
// on, that costs more than the passing on. Large reads and writes are announced
// as usual, and now and then a small one, so that the monitor is never without
// news of a busy process for long.
package sockio

import "net"

const (
	// small is the largest read or write that is not announced, in bytes: a record
	// of TLS and what comes with it.
	small = 20 << 10
	// announceEvery is how many small ones go unannounced in a row.
	announceEvery = 256
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

// Wrap returns a Conn if conn is a TCP connection, and conn itself if not.
func Wrap(conn net.Conn) net.Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		return New(tcp)
	}
	return conn
}

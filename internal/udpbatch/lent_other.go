//go:build !unix

package udpbatch

import (
	"net"

	"adit/internal/lend"
)

// LentReader reads a connected socket, into memory of its own: here nobody tells
// when there is something. It has one user at a time.
type LentReader struct {
	conn *net.UDPConn
	buf  []byte
	list [1][]byte
}

// NewLentReader returns a reader of conn, which stays the caller's.
func NewLentReader(conn *net.UDPConn) (*LentReader, error) {
	return &LentReader{conn: conn, buf: make([]byte, lend.Large)}, nil
}

// Read waits for datagrams: here for one. They are the caller's until Done, which
// must follow unless there was an error.
func (r *LentReader) Read() ([][]byte, error) {
	n, err := r.conn.Read(r.buf)
	if err != nil {
		return nil, err
	}
	r.list[0] = r.buf[:n]
	return r.list[:], nil
}

// Done gives the memory back.
func (r *LentReader) Done() {}

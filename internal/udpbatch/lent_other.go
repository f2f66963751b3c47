//go:build !unix

package udpbatch

import (
	"net"

	"adit/internal/lend"
)

// LentReader reads a connected socket into memory of its own, because nothing on these systems
// tells when there is something to read. It must not be used concurrently.
type LentReader struct {
	conn *net.UDPConn
	buf  []byte
	list [1][]byte
}

// NewLentReader returns a reader of conn, which still belongs to the caller.
func NewLentReader(conn *net.UDPConn) (*LentReader, error) {
	return &LentReader{conn: conn, buf: make([]byte, lend.Large)}, nil
}

// Read waits for datagrams, here for one. They belong to the caller until Done, which must be
// called unless there was an error.
func (r *LentReader) Read() ([][]byte, error) {
	n, err := r.conn.Read(r.buf)
	if err != nil {
		return nil, err
	}
	r.list[0] = r.buf[:n]
	return r.list[:], nil
}

// Done releases the memory.
func (r *LentReader) Done() {}

//go:build !unix

package agent

import (
	"net"

	"adit/internal/lend"
)

// flowReader reads an origin's packets, into a buffer of its own.
type flowReader struct {
	conn *net.UDPConn
	buf  []byte
}

func newFlowReader(conn *net.UDPConn) (*flowReader, error) {
	return &flowReader{conn: conn, buf: make([]byte, lend.Large)}, nil
}

// read waits for a packet. It is the caller's until done.
func (r *flowReader) read() ([]byte, error) {
	n, err := r.conn.Read(r.buf)
	return r.buf[:n], err
}

// done gives the packet back.
func (r *flowReader) done() {}

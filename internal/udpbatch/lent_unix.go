//go:build unix && !linux

package udpbatch

import (
	"errors"
	"net"
	"syscall"

	"adit/internal/lend"
)

// LentReader reads a connected socket. It holds no memory while it waits: of many sockets, most are
// silent most of the time. It must not be used concurrently.
type LentReader struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // made once

	buf  []byte // nil, or lent
	list [1][]byte
	n    int
	err  error
}

// NewLentReader returns a reader of conn, which still belongs to the caller.
func NewLentReader(conn *net.UDPConn) (*LentReader, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &LentReader{raw: raw}
	r.try = func(fd uintptr) bool {
		r.buf = lend.TakeLarge()
		for {
			r.n, r.err = syscall.Read(int(fd), r.buf)
			if !errors.Is(r.err, syscall.EINTR) {
				break
			}
		}
		if r.err != nil {
			r.Done()
		}
		return !errors.Is(r.err, syscall.EAGAIN) // wait until there is something
	}
	return r, nil
}

// Read waits for datagrams, here for one. They belong to the caller until Done, which must be
// called unless there was an error.
func (r *LentReader) Read() ([][]byte, error) {
	if err := r.raw.Read(r.try); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	r.list[0] = r.buf[:r.n]
	return r.list[:], nil
}

// Done releases the memory.
func (r *LentReader) Done() {
	if r.buf != nil {
		lend.GiveLarge(r.buf)
		r.buf, r.list[0] = nil, nil
	}
}

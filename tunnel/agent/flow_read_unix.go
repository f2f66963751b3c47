//go:build unix

package agent

import (
	"errors"
	"net"
	"syscall"

	"adit/internal/lend"
	"adit/internal/sockio"
)

// flowReader reads an origin's packets. While it waits it holds no buffer: most
// flows are silent most of the time.
type flowReader struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // made once

	buf []byte // nil, or lent
	n   int
	err error
}

func newFlowReader(conn *net.UDPConn) (*flowReader, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &flowReader{raw: raw}
	r.try = func(fd uintptr) bool {
		r.buf = lend.TakeLarge()
		for {
			r.n, r.err = sockio.ReadFD(fd, r.buf)
			if !errors.Is(r.err, syscall.EINTR) {
				break
			}
		}
		if errors.Is(r.err, syscall.EAGAIN) {
			r.done()
			return false // wait until there is something
		}
		return true
	}
	return r, nil
}

// read waits for a packet. It is the caller's until done.
func (r *flowReader) read() ([]byte, error) {
	r.err = nil
	if err := r.raw.Read(r.try); err != nil {
		r.done()
		return nil, err
	}
	if r.err != nil {
		r.done()
		return nil, r.err
	}
	return r.buf[:r.n], nil
}

// done gives the packet's buffer back.
func (r *flowReader) done() {
	if r.buf != nil {
		lend.GiveLarge(r.buf)
		r.buf = nil
	}
}

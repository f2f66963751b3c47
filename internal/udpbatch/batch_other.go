//go:build !linux

package udpbatch

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// fastIO moves many datagrams a system call; not here.
type fastIO struct {
	gso atomic.Bool
	gro bool
}

func newFastIO(syscall.RawConn, *net.UDPConn, Options) *fastIO { return nil }

func (*fastIO) read([]Buffer) (int, error) { return 0, errors.ErrUnsupported }

func (*fastIO) wait() error { return errors.ErrUnsupported }

func (*fastIO) write(*Conn, [][]byte, Addr) error { return errors.ErrUnsupported }

//go:build !linux && !windows

package udpbatch

import (
	"errors"
	"syscall"
)

// tuneSocket changes nothing here: net sets the buffers.
func tuneSocket(syscall.RawConn, int, bool) {}

// hearRefusals has reads of a connected socket return that the peer's machine says
// nobody listens, as the ICMP message about an earlier datagram.
// It is so here without asking.
func hearRefusals(syscall.RawConn) {}

func isTooLarge(err error) bool { return errors.Is(err, syscall.EMSGSIZE) }

// isTransient reports errors that tell of this moment or of an earlier
// datagram, not of the socket.
func isTransient(err error) bool {
	for _, e := range []syscall.Errno{
		syscall.ENOBUFS, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.EHOSTDOWN, syscall.ENETDOWN, syscall.EADDRNOTAVAIL,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

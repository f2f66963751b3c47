package udpbatch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// tuneSocket asks for large buffers beyond the system's limit where this
// process may, and if whole is set for datagrams that are never fragmented, so
// that a path's MTU shows.
func tuneSocket(raw syscall.RawConn, size int, whole bool) {
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, size)
		if !whole {
			return
		}
		// PROBE: set DF, and leave the size to path MTU discovery above.
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	})
}

// hearRefusals has reads of a connected socket return that the peer's machine says
// nobody listens, as the ICMP message about an earlier datagram.
// It is so here without asking.
func hearRefusals(syscall.RawConn) {}

func isTooLarge(err error) bool { return errors.Is(err, unix.EMSGSIZE) }

// isTransient reports errors that tell of this moment or of an earlier
// datagram, not of the socket.
func isTransient(err error) bool {
	for _, e := range []syscall.Errno{
		unix.ENOBUFS, unix.ENOMEM, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH,
		unix.EHOSTDOWN, unix.ENETDOWN, unix.EPERM, unix.EACCES, unix.EADDRNOTAVAIL,
		unix.EAGAIN, // of one that never waits
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

package udpbatch

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// ipDontFragment is IP_DONTFRAGMENT of ws2ipdef.h; IPV6_DONTFRAG has the same number.
const ipDontFragment = 14

// tuneSocket asks if whole is set for datagrams that are never fragmented, so
// that a path's MTU shows.
func tuneSocket(raw syscall.RawConn, _ int, whole bool) {
	if !whole {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, ipDontFragment, 1)
		_ = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, ipDontFragment, 1)
	})
}

func isTooLarge(err error) bool { return errors.Is(err, windows.WSAEMSGSIZE) }

// isTransient reports errors that tell of this moment or of an earlier
// datagram, not of the socket.
func isTransient(err error) bool {
	for _, e := range []syscall.Errno{
		windows.WSAENOBUFS, windows.WSAECONNRESET, windows.WSAENETRESET,
		windows.WSAEHOSTUNREACH, windows.WSAENETUNREACH, windows.WSAEADDRNOTAVAIL,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

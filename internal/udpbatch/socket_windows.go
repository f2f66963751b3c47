package udpbatch

import (
	"errors"
	"syscall"
	"unsafe"

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

// hearRefusals has reads of a connected socket return that the peer's machine says
// nobody listens, as the ICMP message about an earlier datagram.
// Windows does so by itself, but package net turns it off for all UDP sockets.
func hearRefusals(raw syscall.RawConn) {
	_ = raw.Control(func(fd uintptr) {
		yes, returned := uint32(1), uint32(0)
		_ = windows.WSAIoctl(windows.Handle(fd), windows.SIO_UDP_CONNRESET, (*byte)(unsafe.Pointer(&yes)), uint32(unsafe.Sizeof(yes)), nil, 0, &returned, nil, 0)
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

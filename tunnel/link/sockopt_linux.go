package link

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// notSent is how many bytes wait in the kernel unsent before a socket takes no
// more: a ping or a small request waits behind no more than these.
const notSent = 256 << 10

// tuneTCP asks for BBR congestion control, which loss does not stop as it does
// CUBIC, and keeps the kernel's queue short. All of it is best effort.
func tuneTCP(conn net.Conn) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return
	}
	rc.Control(func(fd uintptr) {
		unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "bbr")
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSent)
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 15000)
	})
}

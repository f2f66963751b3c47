//go:build linux || darwin

package link

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnsent has the system take no more while so many bytes wait there
// unsent: what comes later waits behind no more than these. It is best effort.
func limitUnsent(conn net.Conn, bytes int) {
	onSocket(conn, func(fd int) {
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes)
	})
}

// onSocket calls f with a connection's socket, if it has one.
func onSocket(conn net.Conn, f func(fd int)) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return
	}
	rc.Control(func(fd uintptr) { f(int(fd)) })
}

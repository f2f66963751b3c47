package link

import (
	"net"

	"golang.org/x/sys/unix"
)

// tuneTCP asks for BBR congestion control, which loss does not stop as it does
// CUBIC. It is best effort.
func tuneTCP(conn net.Conn) {
	onSocket(conn, func(fd int) {
		unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "bbr")
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 15000)
	})
}

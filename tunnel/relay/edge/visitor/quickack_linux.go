package visitor

import "golang.org/x/sys/unix"

// ackNow acknowledges what has been received. The system otherwise delays that, by 40 ms or
// more, until there is something to send with it.
func (v *Conn) ackNow() {
	tcp := v.tcp()
	if tcp == nil {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
}

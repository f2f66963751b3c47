package visitor

import "golang.org/x/sys/unix"

// ackNow acknowledges what has come. The system puts that off, by 40 ms and more, until
// there is something to send along.
func (v *Conn) ackNow() {
	tcp := v.tcp()
	if tcp == nil {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) })
	}
}

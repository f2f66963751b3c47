package record

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// wornSock is a socket whose first reads fail for a reason that passes.
type wornSock struct {
	net.PacketConn
	fails atomic.Int32
}

func (s *wornSock) ReadFrom(p []byte) (int, net.Addr, error) {
	if s.fails.Add(-1) >= 0 {
		return 0, nil, &net.OpError{Op: "read", Net: "udp", Err: os.NewSyscallError("recvfrom", syscall.ENOMEM)}
	}
	return s.PacketConn.ReadFrom(p)
}

// TestListenerOutlivesReadsThatFail has a system without memory for a while: a
// relay's only socket for agents is not given up for it.
func TestListenerOutlivesReadsThatFail(t *testing.T) {
	leakCheck(t)
	server := &wornSock{PacketConn: udpSocket(t)}
	server.fails.Store(200)
	c, s := pair(t, udpSocket(t), server, clientConfig(), serverConfig())
	at := receiveAll(s)
	send(t, c, "all the same")
	at.wait(t, 1)
}

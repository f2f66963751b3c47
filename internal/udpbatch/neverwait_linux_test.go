package udpbatch

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestAFullSocketIsNotWaitedFor tries both kinds of writer on a socket that has
// no room.
func TestAFullSocketIsNotWaitedFor(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	for err = nil; err == nil; {
		err = unix.Send(fds[0], make([]byte, 1000), 0)
	}
	if err != unix.EAGAIN {
		t.Fatalf("fill the socket: %v", err)
	}
	for _, never := range []bool{false, true} {
		w := newWriter(never)
		w.fill([][]byte{make([]byte, 1000)}, 0)
		if done := w.call(uintptr(fds[0])); done != never || w.errno != unix.EAGAIN {
			t.Errorf("never waits %v: the call is over: %v, with %v", never, done, w.errno)
		}
	}
	c := &Conn{told: func(err error) { t.Errorf("told of %v", err) }}
	if !c.lost(unix.EAGAIN) {
		t.Error("a datagram without room is an error of the socket, not a lost one")
	}
}

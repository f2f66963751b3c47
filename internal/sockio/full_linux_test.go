package sockio

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestADatagramWithoutRoomIsLost tries both of its calls, one that is announced
// and one that is not, on a socket that has no room.
func TestADatagramWithoutRoomIsLost(t *testing.T) {
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
	h := &half{b: make([]byte, 1000)}
	if h.once(syscall.SYS_WRITE, uintptr(fds[0])) || h.errno != 0 {
		t.Errorf("unannounced: it went, or failed with %v", h.errno)
	}
	if h.announcedWrite(uintptr(fds[0])); h.errno != 0 {
		t.Errorf("announced: it failed with %v", h.errno)
	}
	if h.announcedWrite(^uintptr(0)); h.errno != syscall.EBADF {
		t.Errorf("announced, on no socket: got %v", h.errno)
	}
}

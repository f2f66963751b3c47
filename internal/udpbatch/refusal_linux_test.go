package udpbatch

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestRefusedSegmentationIsLeftForGood(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EIO, unix.EINVAL} {
		a, b := New(listen(t, "127.0.0.1:0"), Options{}), New(listen(t, "127.0.0.1:0"), Options{})
		if gso, _ := a.Offloads(); !gso {
			t.Skip("this kernel has no UDP_SEGMENT")
		}
		a.fast.writers.New = func() any {
			w := newWriter()
			real := w.call
			w.call = func(fd uintptr) bool {
				if w.packets[w.from] > 1 {
					w.errno, w.sent = errno, 0
					return true
				}
				return real(fd)
			}
			return w
		}
		exchange(t, a, b)
		if gso, _ := a.Offloads(); gso {
			t.Errorf("GSO is still on after %v", errno)
		}
	}
}

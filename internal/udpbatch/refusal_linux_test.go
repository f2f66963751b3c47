package udpbatch

import (
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAnswerComesFromTheAddressThatWasAsked(t *testing.T) {
	for _, wildcard := range []string{"0.0.0.0:0", "[::]:0"} {
		for _, noOffload := range []bool{false, true} {
			server := New(listen(t, wildcard), Options{NoOffload: noOffload})
			client := listen(t, "127.0.0.1:0")
			asked := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: server.LocalAddr().(*net.UDPAddr).Port}
			if _, err := client.WriteTo([]byte("question"), asked); err != nil {
				t.Fatal(err)
			}
			bufs := []Buffer{{B: make([]byte, server.BufferSize())}}
			_ = server.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := server.ReadBatch(bufs); err != nil {
				t.Fatal(err)
			}
			// Two of a size, so that GSO has its control message too.
			if err := server.WriteBatch([][]byte{[]byte("answer 1"), []byte("answer 2")}, bufs[0].Addr); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				b := make([]byte, 100)
				_ = client.SetReadDeadline(time.Now().Add(20 * time.Second))
				_, from, err := client.ReadFrom(b)
				if err != nil {
					t.Fatal(err)
				}
				if from.String() != asked.String() {
					t.Errorf("%s: the answer came from %v, %v was asked", wildcard, from, asked)
				}
			}
		}
	}
}

func TestRefusedSegmentationIsLeftForGood(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EIO, unix.EINVAL} {
		a, b := New(listen(t, "127.0.0.1:0"), Options{}), New(listen(t, "127.0.0.1:0"), Options{})
		if gso, _ := a.Offloads(); !gso {
			t.Skip("this kernel has no UDP_SEGMENT")
		}
		a.fast.writers = &sync.Pool{New: func() any {
			w := newWriter(false)
			real := w.call
			w.call = func(fd uintptr) bool {
				if w.packets[w.from] > 1 {
					w.errno, w.sent = errno, 0
					return true
				}
				return real(fd)
			}
			return w
		}}
		exchange(t, a, b)
		if gso, _ := a.Offloads(); gso {
			t.Errorf("GSO is still on after %v", errno)
		}
	}
}

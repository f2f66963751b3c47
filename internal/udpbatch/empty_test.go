package udpbatch

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestEmptyDatagramsPass sends datagrams of no bytes, which UDP has: alone and
// between others, each once.
func TestEmptyDatagramsPass(t *testing.T) {
	for _, opt := range []Options{{}, {NoOffload: true}} {
		for _, sizes := range [][]int{{0}, {0, 0}, {0, 3}, {3, 0}, {3, 3, 0, 3, 3}, {3, 3, 2, 0, 0, 1}} {
			from, to := loopback(t), loopback(t)
			sender := New(from, opt)
			receiver := New(to, Options{NoOffload: true})
			var packets [][]byte
			for i, size := range sizes {
				packets = append(packets, make([]byte, size))
				for j := range packets[i] {
					packets[i][j] = byte(i)
				}
			}
			sent := make(chan error, 1)
			go func() { sent <- sender.WriteBatch(packets, AddrOf(to.LocalAddr())) }()
			_ = to.SetReadDeadline(time.Now().Add(20 * time.Second))
			for i, want := range packets {
				bufs := []Buffer{{B: make([]byte, 100)}}
				if _, err := receiver.ReadBatch(bufs); err != nil {
					t.Fatalf("%+v, %v: datagram %d: %v", opt, sizes, i, err)
				}
				if got := bufs[0].B[:bufs[0].N]; string(got) != string(want) {
					t.Errorf("%+v, %v: datagram %d is %v, want %v", opt, sizes, i, got, want)
				}
			}
			select {
			case err := <-sent:
				if err != nil {
					t.Errorf("%+v, %v: %v", opt, sizes, err)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%+v, %v: WriteBatch does not return", opt, sizes)
			}
			_ = to.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if bufs := []Buffer{{B: make([]byte, 100)}}; len(sizes) > 1 {
				if n, err := receiver.ReadBatch(bufs); err == nil {
					t.Errorf("%+v, %v: %d datagrams more, of %d bytes", opt, sizes, n, bufs[0].N)
				}
			}
		}
	}
}

// loopback is a UDP socket.
func loopback(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

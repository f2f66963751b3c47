package udpbatch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// plain hides a socket's type, so that only one datagram a call is left.
type plain struct{ net.PacketConn }

func listen(t testing.TB, addr string) *net.UDPConn {
	t.Helper()
	u, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenUDP("udp", u)
	if err != nil {
		t.Skipf("no socket on %s: %v", addr, err)
	}
	t.Cleanup(func() { pc.Close() })
	return pc
}

func TestEveryWayBringsEveryDatagram(t *testing.T) {
	ways := map[string]func(*net.UDPConn) *Conn{
		"offload":       func(c *net.UDPConn) *Conn { return New(c, Options{}) },
		"no offload":    func(c *net.UDPConn) *Conn { return New(c, Options{NoOffload: true}) },
		"one at a time": func(c *net.UDPConn) *Conn { return New(plain{c}, Options{}) },
		"other systems": func(c *net.UDPConn) *Conn { n := New(c, Options{NoOffload: true}); n.fast = nil; return n },
	}
	for from, sender := range ways {
		for to, receiver := range ways {
			for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
				t.Run(fmt.Sprintf("%s to %s on %s", from, to, host), func(t *testing.T) {
					exchange(t, sender(listen(t, host)), receiver(listen(t, host)))
				})
			}
		}
	}
}

func TestDualStackSocketReachesIPv4(t *testing.T) {
	exchange(t, New(listen(t, ":0"), Options{}), New(listen(t, "127.0.0.1:0"), Options{}))
}

// exchange sends batches of mixed sizes and wants each datagram back whole.
func exchange(t *testing.T, a, b *Conn) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var packets [][]byte
	arena := make([]byte, 0, 1<<20)
	for i := range 200 {
		size := 1200
		if i%7 == 6 || i > 150 {
			size = 20 + rng.IntN(1180)
		}
		start := len(arena)
		arena = arena[:start+size]
		p := arena[start:]
		for j := range p {
			p[j] = byte(i + j)
		}
		if i%3 == 0 {
			p = bytes.Clone(p) // not side by side with its neighbour
		}
		packets = append(packets, p)
	}
	bufs := make([]Buffer, b.Batch())
	for i := range bufs {
		bufs[i].B = make([]byte, b.BufferSize())
	}
	want := a.LocalAddr().(*net.UDPAddr).Port
	const window = 40 // what a socket buffer of the smallest kind holds
	for i, sent := 0, 0; i < len(packets); {
		if i == sent {
			if err := a.WriteBatch(packets[sent:min(sent+window, len(packets))], AddrOf(b.LocalAddr())); err != nil {
				t.Fatal(err)
			}
			sent = min(sent+window, len(packets))
		}
		if err := b.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := b.ReadBatch(bufs)
		if err != nil {
			t.Fatalf("after %d of %d datagrams: %v", i, len(packets), err)
		}
		for _, buf := range bufs[:n] {
			if got := int(buf.Addr.AddrPort.Port()); got != want {
				t.Fatalf("datagram of port %d, want %d", got, want)
			}
			for data := buf.B[:buf.N]; len(data) > 0; i++ {
				p := data[:min(buf.Segment, len(data))]
				data = data[len(p):]
				if !bytes.Equal(p, packets[i]) {
					t.Fatalf("datagram %d: got %d bytes, want %d, or other bytes", i, len(p), len(packets[i]))
				}
			}
		}
	}
}

func TestDatagramLargerThanThePathIsLostOnly(t *testing.T) {
	a, b := New(listen(t, "127.0.0.1:0"), Options{}), New(listen(t, "127.0.0.1:0"), Options{})
	big := make([]byte, 65530) // more than UDP over IPv4 carries
	small := []byte("small")
	if err := a.WriteBatch([][]byte{big, small}, AddrOf(b.LocalAddr())); err != nil {
		t.Fatal(err)
	}
	if a.TooLarge() != 1 {
		t.Errorf("TooLarge: got %d, want 1", a.TooLarge())
	}
	bufs := []Buffer{{B: make([]byte, b.BufferSize())}}
	_ = b.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := b.ReadBatch(bufs); err != nil || string(bufs[0].B[:bufs[0].N]) != "small" {
		t.Fatalf("got %q, %v", bufs[0].B[:bufs[0].N], err)
	}
}

func TestWriteAllocatesNothing(t *testing.T) {
	a, b := New(listen(t, "127.0.0.1:0"), Options{}), listen(t, "127.0.0.1:0")
	packets := [][]byte{make([]byte, 1200), make([]byte, 1200), make([]byte, 10)}
	to := AddrOf(b.LocalAddr())
	if a.fast == nil {
		t.Skip("one datagram a call here")
	}
	if n := testing.AllocsPerRun(200, func() { _ = a.WriteBatch(packets, to) }); n > 0.5 {
		t.Errorf("WriteBatch allocates %v times", n)
	}
}

func TestCloseEndsAWaitingRead(t *testing.T) {
	a := New(listen(t, "127.0.0.1:0"), Options{})
	done := make(chan error, 1)
	go func() {
		_, err := a.ReadBatch([]Buffer{{B: make([]byte, 2000)}})
		done <- err
	}()
	a.Close()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a read on a closed socket brought data")
		}
	case <-time.After(20 * time.Second):
		t.Error("the read still waits")
	}
}

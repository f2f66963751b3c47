package simnet

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// world is two hosts joined by one link each way.
func world(t *testing.T, p Path, test func(n *Network, a, b *Conn, there *Link)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := New(1)
		defer n.Close()
		there, back := n.Pair(p)
		n.Join("10.0.0.1", "10.0.0.2", there, back)
		a, err := n.Listen("10.0.0.1:1000")
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.Listen("10.0.0.2:2000")
		if err != nil {
			t.Fatal(err)
		}
		test(n, a, b, there)
	})
}

// arrivals reads what arrives within a time: the first byte of each packet, and
// when it came.
func arrivals(t *testing.T, c *Conn, within time.Duration) (bytes []byte, at []time.Duration) {
	t.Helper()
	began := time.Now()
	c.SetReadDeadline(began.Add(within))
	buf := make([]byte, 64<<10)
	for {
		_, _, err := c.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return bytes, at
		}
		if err != nil {
			t.Fatal(err)
		}
		bytes, at = append(bytes, buf[0]), append(at, time.Since(began))
	}
}

func burst(c *Conn, to string, n, size int) {
	for i := range n {
		b := make([]byte, size)
		b[0] = byte(i)
		c.WriteTo(b, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
	}
}

func TestDelayAndRate(t *testing.T) {
	world(t, Path{Delay: 20 * time.Millisecond, Rate: 100_000, Buffer: 10_000}, func(n *Network, a, b *Conn, there *Link) {
		burst(a, "10.0.0.2:2000", 20, 1000)
		got, at := arrivals(t, b, time.Second)
		if len(got) != 10 {
			t.Fatalf("got %d packets, want the 10 that the buffer holds", len(got))
		}
		for i, at := range at {
			if want := 20*time.Millisecond + time.Duration(i+1)*10*time.Millisecond; at != want || got[i] != byte(i) {
				t.Errorf("packet %d: got %d at %v, want it at %v", i, got[i], at, want)
			}
		}
		if s := there.Stats(); s.Packets != 10 || s.Overflowed != 10 || s.MaxQueue != 90*time.Millisecond {
			t.Errorf("got %+v", s)
		}
	})
}

func TestChances(t *testing.T) {
	const sent = 10_000
	for name, c := range map[string]struct {
		path     Path
		min, max int
	}{
		"nothing":   {Path{}, sent, sent},
		"loss":      {Path{Loss: 0.1}, 8800, 9200},
		"duplicate": {Path{Duplicate: 0.1}, 10800, 11200},
		"mtu":       {Path{MTU: 9}, 0, 0},
		"blocked":   {Path{Blocked: true}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			world(t, c.path, func(n *Network, a, b *Conn, _ *Link) {
				burst(a, "10.0.0.2:2000", sent, 10)
				if got, _ := arrivals(t, b, time.Second); len(got) < c.min || len(got) > c.max {
					t.Errorf("got %d of %d packets, want %d to %d", len(got), sent, c.min, c.max)
				}
			})
		})
	}
}

func TestOrder(t *testing.T) {
	late := func(p Path) (n int) {
		world(t, p, func(_ *Network, a, b *Conn, _ *Link) {
			go func() {
				for range 50 {
					burst(a, "10.0.0.2:2000", 4, 10)
					time.Sleep(time.Millisecond)
				}
			}()
			got, _ := arrivals(t, b, time.Second)
			if len(got) != 200 {
				t.Fatalf("got %d packets, want 200", len(got))
			}
			for i := 1; i < len(got); i++ {
				if got[i] != (got[i-1]+1)%4 {
					n++
				}
			}
		})
		return n
	}
	if n := late(Path{Delay: time.Millisecond, Jitter: 5 * time.Millisecond}); n != 0 {
		t.Errorf("jitter put %d packets out of order", n)
	}
	if n := late(Path{Delay: time.Millisecond, Reorder: 0.2}); n < 10 {
		t.Errorf("reordering put only %d packets out of order", n)
	}
}

func TestSameSeedSameFate(t *testing.T) {
	run := func() (all []byte) {
		world(t, Path{Loss: 0.5, Reorder: 0.3}, func(_ *Network, a, b *Conn, _ *Link) {
			burst(a, "10.0.0.2:2000", 200, 10)
			all, _ = arrivals(t, b, time.Second)
		})
		return all
	}
	if a, b := run(), run(); string(a) != string(b) {
		t.Errorf("two runs differ: %v and %v", a, b)
	}
}

func TestRebind(t *testing.T) {
	world(t, Path{}, func(n *Network, a, b *Conn, there *Link) {
		n.Route(netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("10.0.0.2"), there)
		if err := a.Rebind("10.9.9.9:7"); err != nil {
			t.Fatal(err)
		}
		burst(a, "10.0.0.2:2000", 1, 10)
		_, from, err := b.ReadFrom(make([]byte, 10))
		if err != nil || from.String() != "10.9.9.9:7" {
			t.Fatalf("got a packet from %v, %v", from, err)
		}
		burst(b, "10.0.0.1:1000", 1, 10) // where nobody is any more
		burst(b, "10.9.9.9:7", 2, 10)
		if got, _ := arrivals(t, a, time.Second); len(got) != 2 {
			t.Errorf("got %d packets at the new address, want 2", len(got))
		}
		if err := a.Rebind("10.0.0.2:2000"); err == nil {
			t.Error("an address in use was given twice")
		}
	})
}

func TestCloseEndsReads(t *testing.T) {
	world(t, Path{}, func(n *Network, a, b *Conn, _ *Link) {
		done := make(chan error)
		go func() {
			_, _, err := a.ReadFrom(make([]byte, 10))
			done <- err
		}()
		synctest.Wait()
		a.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want net.ErrClosed", err)
		}
		if _, err := a.WriteTo([]byte{1}, b.LocalAddr()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: got %v, want net.ErrClosed", err)
		}
	})
}

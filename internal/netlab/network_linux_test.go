package netlab

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adit/internal/require"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// newNetwork is one that ends with the test.
func newNetwork(t *testing.T, p Path) *Network {
	t.Helper()
	require.Root(t)
	require.Tool(t, "ip")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		require.Missing(t, "no TUN devices: %v", err)
	}
	n, err := New(p)
	if errors.Is(err, unix.EPERM) {
		require.Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// packets opens a socket on each of the two hosts.
func packets(t *testing.T, n *Network) (near, far net.PacketConn) {
	t.Helper()
	for _, host := range []struct {
		space *Space
		addr  string
		conn  *net.PacketConn
	}{{n.Near, NearAddr, &near}, {n.Far, FarAddr, &far}} {
		if err := host.space.Do(func() (err error) {
			*host.conn, err = net.ListenPacket("udp4", host.addr+":7000")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*host.conn).Close() })
	}
	return near, far
}

func TestPacketsTravelAsLongAsThePathSays(t *testing.T) {
	const rtt = 60 * time.Millisecond
	n := newNetwork(t, Path{RTT: rtt, Rate: 1e6})
	near, far := packets(t, n)
	began := time.Now()
	buf := make([]byte, 2000)
	for _, hop := range []struct{ from, to net.PacketConn }{{near, far}, {far, near}} {
		if _, err := hop.from.WriteTo(make([]byte, 1472), hop.to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		hop.to.SetReadDeadline(time.Now().Add(30 * time.Second))
		size, from, err := hop.to.ReadFrom(buf)
		if err != nil || size != 1472 || from.String() != hop.from.LocalAddr().String() {
			t.Fatalf("got %d bytes from %v and %v, want 1472 from %v", size, from, err, hop.from.LocalAddr())
		}
	}
	// A packet of 1,500 bytes takes 1.5 ms by itself at that rate.
	if took := time.Since(began); took < rtt+3*time.Millisecond {
		t.Errorf("there and back took %v, want at least %v", took, rtt+3*time.Millisecond)
	}
	r, err := n.Close()
	if err != nil {
		t.Fatal(err)
	}
	if r.There.Bytes < 1500 || r.Back.Bytes < 1500 || r.Late > r.LateMost {
		t.Errorf("the path has seen %+v, want 1,500 bytes each way", r)
	}
}

func TestAPathMayLoseAll(t *testing.T) {
	n := newNetwork(t, Path{Loss: 1})
	near, far := packets(t, n)
	if _, err := near.WriteTo([]byte("lost"), far.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	far.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if size, _, err := far.ReadFrom(make([]byte, 100)); err == nil {
		t.Errorf("%d bytes came over a path that loses all", size)
	}
	if r, err := n.Close(); err != nil || r.There.Packets != 0 {
		t.Errorf("the path has seen %+v and %v, want no packet let through", r, err)
	}
}

func TestHostsUseTheCongestionControlOfThePath(t *testing.T) {
	n := newNetwork(t, Path{TCP: "reno"})
	defer n.Close()
	for _, space := range []*Space{n.Near, n.Far} {
		var got []byte
		if err := space.Do(func() (err error) {
			got, err = os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
			return err
		}); err != nil || string(got) != "reno\n" {
			t.Errorf("got %q and %v, want reno", got, err)
		}
	}
	if got, err := New(Path{TCP: "nosuch"}); err == nil {
		got.Close()
		t.Error("a congestion control that is not there was taken")
	}
}

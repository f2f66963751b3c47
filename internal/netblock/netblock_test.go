package netblock

import (
	"net"
	"net/netip"
	"testing"
)

func TestPeersAreToldApart(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7/32",
		"::ffff:192.0.2.7":       "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1":   "2001:db8:1:2::/64",
		"2001:db8:1:3::1":        "2001:db8:1:3::/64",
		"fe80::1%eth0":           "fe80::/64",
		"::ffff:192.0.2.7%eth0":  "192.0.2.7/32",
		"2001:db8:1:2::1%whole9": "2001:db8:1:2::/64",
	} {
		if got := Of(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
	if got := Of(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("no address: got %v, want none", got)
	}
}

func TestPeersOfConnections(t *testing.T) {
	for _, c := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1}, "192.0.2.7/32"},
		{&net.UDPAddr{IP: net.ParseIP("2001:db8::7"), Port: 1}, "2001:db8::/64"},
		{&net.UDPAddr{IP: net.ParseIP("fe80::7"), Port: 1, Zone: "eth0"}, "fe80::/64"},
		{&net.UnixAddr{Name: "/run/socket", Net: "unix"}, "invalid Prefix"},
		{nil, "invalid Prefix"},
	} {
		if got := OfPeer(c.addr).String(); got != c.want {
			t.Errorf("%v: got %s, want %s", c.addr, got, c.want)
		}
	}
}

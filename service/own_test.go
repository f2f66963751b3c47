package service

import (
	"net/netip"
	"testing"
)

func TestNoTunnelLeadsToThisProcess(t *testing.T) {
	loopback := own{netip.MustParseAddrPort("127.0.0.1:37271"), []netip.AddrPort{
		netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:37280"),
	}}
	open := own{api: netip.MustParseAddrPort("0.0.0.0:37271")}
	for _, test := range []struct {
		own     own
		ip      string
		port    int
		refused bool
	}{
		{loopback, "127.0.0.1", 37271, true},
		{loopback, "127.0.0.2", 37271, true},
		{loopback, "::1", 37271, true},
		{loopback, "127.0.0.1", 3000, false},
		{loopback, "192.0.2.7", 37271, false},
		{loopback, "127.0.0.1", 37280, true},
		{loopback, "::1", 8080, true},
		{loopback, "192.0.2.7", 8080, false},
		{open, "127.0.0.1", 37271, true},
		{open, "192.0.2.7", 37271, false}, // of another machine
		{open, "127.0.0.1", 8080, false},
	} {
		if err := test.own.refuse(netip.MustParseAddr(test.ip), test.port); (err != nil) != test.refused {
			t.Errorf("%s:%d: got %v, want refused %v", test.ip, test.port, err, test.refused)
		}
	}
}

package edge

import (
	"net"
	"net/netip"
	"testing"
)

// TestALoadBalancerIsNotOneVisitor: what it brings without a PROXY header is of many.
func TestALoadBalancerIsNotOneVisitor(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, c := range []struct {
		trusted []netip.Prefix
		want    int
	}{{nil, 2}, {loopback, 3}} {
		e := New(Config{HTTP: ln, HTTPS: ln, Trusted: c.trusted, Proxy: ProxyOff, Limits: Limits{ConnectionsPerAddress: 2}})
		got := 0
		for range 3 {
			visitor, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer visitor.Close()
			conn, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if v := e.admit(conn); v != nil {
				defer v.Close()
				got++
			}
		}
		if got != c.want || e.Figures().Connections != got {
			t.Errorf("trusted %v: %d of 3 connections are let in, %d counted; want %d", c.trusted, got, e.Figures().Connections, c.want)
		}
	}
}

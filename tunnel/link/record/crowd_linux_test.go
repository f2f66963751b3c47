package record

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestHandshakesOfAFewAddressesKeepNobodyOut has two addresses take all places and
// stop amid their handshakes. Loopback has many addresses on Linux alone.
func TestHandshakesOfAFewAddressesKeepNobodyOut(t *testing.T) {
	leakCheck(t)
	cfg := serverConfig()
	cfg.HandshakeTimeout = time.Minute // they do not end by themselves here
	cfg.MaxHandshakes, cfg.MaxHandshakesPerAddress = 8, 4
	l := startListener(t, udpSocket(t), cfg)
	from := func(host byte) *net.UDPConn {
		pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, host)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pc.Close() })
		return pc
	}
	hello := makeHello(t)
	for i := range 16 {
		stall(t, l, from(byte(10+i%2)), hello)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c, err := Client(ctx, from(20), l.Addr(), clientConfig())
		cancel()
		if err != nil {
			t.Fatalf("an address with no other handshake: %v", err)
		}
		defer c.Close()
	}
	if n, cut := l.handshakes.Len(), l.Cut(); n > 8 || cut == 0 {
		t.Errorf("%d handshakes are under way and %d were cut, want 8 at most and some", n, cut)
	}
}

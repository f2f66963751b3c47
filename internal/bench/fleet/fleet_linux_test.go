package fleet

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"adit/tunnel/link"
)

// TestAgentsHaveAddressesOfTheirOwn: a relay bounds what one address may ask, and
// bytes of the index carry over.
func TestAgentsHaveAddressesOfTheirOwn(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for i := range 70_000 {
		a := address(i)
		if !a.IsLoopback() || seen[a] {
			t.Fatalf("agent %d: got %v, want a loopback address that no other has", i, a)
		}
		seen[a] = true
	}
}

// TestAgentsDialFromTheirAddress looks at the sockets that a session is dialled with.
func TestAgentsDialFromTheirAddress(t *testing.T) {
	from := netip.MustParseAddr("127.1.2.3")
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = dialFrom(from)(ctx, link.DialConfig{Relay: server.LocalAddr().String(), Transport: link.DTLS})
	}()
	server.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, peer, err := server.ReadFrom(make([]byte, 2048))
	if err != nil {
		t.Fatal(err)
	}
	if got := peer.(*net.UDPAddr).AddrPort().Addr(); got != from {
		t.Errorf("dialled from %v, want %v", got, from)
	}
	cancel()
	<-done
}

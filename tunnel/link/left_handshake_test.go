package link

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"
)

// deafened hears no more than a few datagrams.
type deafened struct {
	net.PacketConn
	left int
}

func (d *deafened) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := d.PacketConn.ReadFrom(p)
		if err != nil || d.left > 0 {
			d.left--
			return n, from, err
		}
	}
}

// TestAHandshakeThatTheRelayHasLeftIsBegunAnew: a relay that was killed amid it does not
// answer what follows, nor does the one that runs then.
func TestAHandshakeThatTheRelayHasLeftIsBegunAnew(t *testing.T) {
	t.Parallel() // most of it is waiting
	for heard := 1; heard <= 2; heard++ {
		l, fingerprint := testListener(t, ListenConfig{})
		var sockets atomic.Int64
		began := time.Now()
		client, _ := dialDTLSPair(t, l, DialConfig{
			Fingerprint: fingerprint,
			ListenPacket: func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
				socket, err := listenUDP(ctx, relay)
				if sockets.Add(1) == 1 && err == nil {
					socket = &deafened{socket, heard}
				}
				return socket, err
			},
		})
		if took := time.Since(began); sockets.Load() != 2 || took > handshakeTimeout/2 {
			t.Errorf("after %d datagrams: %d sockets, %v", heard, sockets.Load(), took)
		}
		client.Close("")
	}
}

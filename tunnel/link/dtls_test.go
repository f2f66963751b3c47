package link

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// dialDTLSPair makes a session over l, whose fingerprint is given.
func dialDTLSPair(t *testing.T, l *Listener, cfg DialConfig) (client, server Session) {
	t.Helper()
	cfg.Relay, cfg.Transport = l.Addr().String(), DTLS
	client, err := Dial(testContext(t), cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	server, err = l.Accept(testContext(t))
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	if client.Transport() != DTLS || server.Transport() != DTLS {
		t.Errorf("got transports %q and %q, want dtls", client.Transport(), server.Transport())
	}
	return client, server
}

func TestSessionOverDTLS(t *testing.T) {
	for _, noOffload := range []bool{false, true} {
		name := "with the system's offloads"
		if noOffload {
			name = "one packet a call"
		}
		t.Run(name, func(t *testing.T) {
			testSession(t, inRealTime, func(t *testing.T) pair {
				l, fingerprint := testListener(t, ListenConfig{KeepAlive: time.Second, NoOffload: noOffload})
				client, server := dialDTLSPair(t, l, DialConfig{Fingerprint: fingerprint, NoOffload: noOffload})
				return pair{client, server, nil, func() { l.Close() }}
			})
		})
	}
}

// holedPacketConn is a socket whose path can be cut.
type holedPacketConn struct {
	net.PacketConn
	cut *atomic.Bool
}

func (c holedPacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, addr, err := c.PacketConn.ReadFrom(b)
		if err != nil || !c.cut.Load() {
			return n, addr, err
		}
	}
}

func (c holedPacketConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, addr)
}

func TestSessionOverDTLSAndAnyPacketConn(t *testing.T) {
	testSession(t, inRealTime, func(t *testing.T) pair {
		l, fingerprint := testListener(t, ListenConfig{KeepAlive: time.Second})
		var cut atomic.Bool
		client, server := dialDTLSPair(t, l, DialConfig{
			Fingerprint: fingerprint,
			ListenPacket: func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
				socket, err := listenUDP(ctx, relay)
				return holedPacketConn{socket, &cut}, err
			},
		})
		return pair{client, server, func() { cut.Store(true) }, func() { l.Close() }}
	})
}

// simulated is a network of one relay and one agent, and the path between them.
type simulated struct {
	network     *simnet.Network
	there, back *simnet.Link
	listener    *Listener
	dial        DialConfig
}

func newSimulated(t *testing.T, path simnet.Path, cfg ListenConfig) *simulated {
	t.Helper()
	s := &simulated{network: simnet.New(1)}
	s.there, s.back = s.network.Pair(path)
	s.network.Join("10.0.0.2", "10.0.0.1", s.there, s.back)
	socket, err := s.network.Listen("10.0.0.1:4433")
	if err != nil {
		t.Fatal(err)
	}
	cfg.PacketConn = socket
	var fingerprint [32]byte
	s.listener, fingerprint = testListener(t, cfg)
	var port atomic.Uint32
	s.dial = DialConfig{
		Relay: "10.0.0.1:4433", Fingerprint: fingerprint, NoWatch: true,
		ListenPacket: func(context.Context, netip.AddrPort) (net.PacketConn, error) {
			return s.network.Listen(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), uint16(1000+port.Add(1))).String())
		},
	}
	return s
}

func (s *simulated) block(blocked bool) {
	for _, l := range []*simnet.Link{s.there, s.back} {
		l.Change(func(p *simnet.Path) { p.Blocked = blocked })
	}
}

func (s *simulated) close() {
	s.listener.Close()
	s.network.Close()
}

func TestSessionOverASimulatedNetwork(t *testing.T) {
	for name, path := range map[string]simnet.Path{
		"clean": {Delay: 10 * time.Millisecond, Rate: 50 << 20},
		"lossy": {Delay: 10 * time.Millisecond, Rate: 50 << 20, Loss: 0.01, Reorder: 0.01, Duplicate: 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			testSession(t, synctest.Test, func(t *testing.T) pair {
				s := newSimulated(t, path, ListenConfig{})
				client, server := dialDTLSPair(t, s.listener, s.dial)
				return pair{client, server, func() { s.block(true) }, s.close}
			})
		})
	}
}

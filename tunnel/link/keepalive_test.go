package link

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"adit/internal/simnet"
)

// natted is a socket behind a NAT that forgets a binding when nothing has gone
// out under it for its lifetime, and then gives another port.
type natted struct {
	*simnet.Conn
	lifetime time.Duration

	mu    sync.Mutex
	out   time.Time
	port  int
	count int // packets in both directions
	moves int
}

func (n *natted) lapsed() bool { return time.Since(n.out) > n.lifetime }

func (n *natted) WriteTo(b []byte, to net.Addr) (int, error) {
	n.mu.Lock()
	if n.lapsed() && !n.out.IsZero() {
		n.port++
		n.moves++
		if err := n.Rebind(fmt.Sprintf("10.0.0.2:%d", n.port)); err != nil {
			panic(err)
		}
	}
	n.out = time.Now()
	n.count++
	n.mu.Unlock()
	return n.Conn.WriteTo(b, to)
}

func (n *natted) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		k, from, err := n.Conn.ReadFrom(b)
		n.mu.Lock()
		lapsed := n.lapsed()
		n.count++
		n.mu.Unlock()
		if err != nil || !lapsed {
			return k, from, err
		}
	}
}

// TestKeepAliveFitsTheNAT leaves a session idle behind NATs of several tempers.
// After an hour visitors come now and then, and none of them must find the
// binding forgotten.
func TestKeepAliveFitsTheNAT(t *testing.T) {
	for _, c := range []struct {
		lifetime time.Duration
		packets  int           // an hour, at most
		death    time.Duration // noticed within
	}{
		{6 * time.Second, 3000, 20 * time.Second},
		{10 * time.Second, 1800, 20 * time.Second},
		{30 * time.Second, 1100, 20 * time.Second},
		{time.Minute, 1100, 20 * time.Second},
	} {
		t.Run(c.lifetime.String(), func(t *testing.T) {
			inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
				var nat *natted
				s.dial.ListenPacket = func(context.Context, netip.AddrPort) (net.PacketConn, error) {
					inner, err := s.network.Listen("10.0.0.2:1000")
					nat = &natted{Conn: inner, lifetime: c.lifetime, port: 1000}
					return nat, err
				}
				client, server := dialDTLSPair(t, s.listener, s.dial)
				defer client.Close("over")
				time.Sleep(time.Hour)
				nat.mu.Lock()
				learnt, before := nat.moves, nat.count
				nat.mu.Unlock()
				time.Sleep(time.Hour)
				nat.mu.Lock()
				packets := nat.count - before
				nat.mu.Unlock()
				worst := time.Duration(0)
				for i := range 60 {
					time.Sleep(time.Duration(1+i%17) * time.Second)
					began := time.Now()
					stream, in := connect(t, server, client)
					worst = max(worst, time.Since(began))
					stream.Close()
					in.Close()
				}
				t.Logf("%d bindings lost while learning, %d packets an hour, heard within %v, worst visitor %v",
					learnt, packets, client.Stats().KeepAlive, worst)
				if worst > 500*time.Millisecond {
					t.Errorf("a visitor waited for %v, want no lost binding", worst)
				}
				if packets > c.packets {
					t.Errorf("%d packets in an idle hour, want at most %d", packets, c.packets)
				}
				time.Sleep(time.Minute)
				s.block(true)
				cut := time.Now()
				<-client.Done()
				noticed := time.Since(cut)
				<-server.Done()
				if both := time.Since(cut); noticed > c.death || both > c.death {
					t.Errorf("death noticed after %v by the agent and %v by both, want within %v", noticed, both, c.death)
				}
			})
		})
	}
}

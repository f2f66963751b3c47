package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/udpbatch"
)

// brokenConn fails at every read. After a million of them it is taken for
// closed, so that who does not pause comes to an end.
type brokenConn struct {
	net.PacketConn
	reads atomic.Int64
	end   func()
}

func (c *brokenConn) ReadFrom([]byte) (int, net.Addr, error) {
	if c.reads.Add(1) == 1e6 {
		c.end()
	}
	return 0, nil, errors.New("the network is down")
}

// TestUDPPortPausesWhileItsSocketFails checks that a socket whose reads all fail is not read
// in a busy loop, and still stops when its port is closed.
func TestUDPPortPausesWhileItsSocketFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		var once atomic.Bool
		end := func() {
			if once.CompareAndSwap(false, true) {
				close(closed)
			}
		}
		conn := &brokenConn{end: end}
		p := &Port{
			all: New(Config{Idle: time.Minute}), closed: closed, conn: udpbatch.New(conn, udpbatch.Options{}),
			flows: map[netip.AddrPort]*flow{}, owners: map[netip.Prefix]int{}, told: map[netip.Prefix]time.Time{},
		}
		done := make(chan struct{})
		go func() {
			p.Serve()
			close(done)
		}()
		time.Sleep(10 * time.Second) // of the bubble's time
		end()
		<-done
		if got := conn.reads.Load(); got < 2 || got > 1000 {
			t.Errorf("in ten seconds the broken socket was read %d times, want some 200", got)
		}
	})
}

package record

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAServerThatEndsTellsWhoIsInAHandshake: a client that is not told repeats what only
// the server that has gone would understand, also to the one that comes after it.
func TestAServerThatEndsTellsWhoIsInAHandshake(t *testing.T) {
	for _, ids := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := newMemNet()
			cfg := serverConfig()
			cfg.NoConnectionID = !ids
			l, err := Listen(n.listen("192.0.2.1:4433"), cfg)
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- l.Serve(context.Background()) }()
			const delay = 50 * time.Millisecond
			n.setJudge(func(_, _ netip.AddrPort, _ []byte) (bool, time.Duration) { return true, delay })
			// A ClientHello, a cookie, and the ClientHello with it.
			const halfway = 3*delay + delay/2
			time.AfterFunc(halfway, func() {
				if l.Sessions() != 1 {
					t.Errorf("%d handshakes are under way, want one", l.Sessions())
				}
				l.Close()
			})
			ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
			defer cancel()
			begun := time.Now()
			c, err := Client(ctx, n.listen("198.51.100.1:1000"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:4433")), clientConfig())
			if took := time.Since(begun); err == nil || took > halfway+2*delay {
				t.Errorf("after %v: %v, want the end of the handshake at once", took, err)
			}
			if err == nil {
				c.Close()
			}
			<-served
		})
	}
}

// TestAHandshakeThatGoesOnNoMoreIsGivenUp: a server that is killed amid it says nothing, and
// the one after it asks for another cookie, or nothing.
func TestAHandshakeThatGoesOnNoMoreIsGivenUp(t *testing.T) {
	const delay = 50 * time.Millisecond
	for killed, most := range map[time.Duration]time.Duration{
		5 * delay / 2: time.Second,             // with the cookie on its way
		7 * delay / 2: 3500 * time.Millisecond, // with the keys
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newMemNet()
			server := netip.MustParseAddrPort("192.0.2.1:4433")
			serve := func() *Listener {
				l, err := Listen(n.listen(server.String()), serverConfig())
				if err != nil {
					t.Fatal(err)
				}
				go func() { _ = l.Serve(context.Background()) }()
				return l
			}
			first, next := serve(), make(chan *Listener, 1)
			var dead atomic.Bool
			n.setJudge(func(_, _ netip.AddrPort, _ []byte) (bool, time.Duration) { return !dead.Load(), delay })
			time.AfterFunc(killed, func() {
				dead.Store(true)
				first.Close()
				time.Sleep(delay)
				dead.Store(false)
				next <- serve()
			})
			ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
			defer cancel()
			begun := time.Now()
			c, err := Client(ctx, n.listen("198.51.100.1:1000"), net.UDPAddrFromAddrPort(server), clientConfig())
			if took := time.Since(begun); !errors.Is(err, ErrStalled) || took > most {
				t.Errorf("killed at %v: %v after %v, want %v", killed, err, took, ErrStalled)
			}
			if err == nil {
				c.Close()
			}
			(<-next).Close()
			synctest.Wait()
		})
	}
}

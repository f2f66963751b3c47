package record

import (
	"context"
	"net"
	"net/netip"
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

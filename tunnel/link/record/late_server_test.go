package record

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestAServerThatComesLaterIsFoundAtOnce: a client asks on in even steps, so
// that a server that returns amid its handshake is not waited for.
func TestAServerThatComesLaterIsFoundAtOnce(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			n := newMemNet()
			l, err := Listen(n.listen("192.0.2.1:4433"), serverConfig())
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- l.Serve(context.Background()) }()
			begun := time.Now()
			n.setJudge(func(_, _ netip.AddrPort, _ []byte) (bool, time.Duration) {
				return time.Since(begun) >= away, 5 * time.Millisecond
			})
			ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
			defer cancel()
			c, err := Client(ctx, n.listen("198.51.100.1:1000"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:4433")), clientConfig())
			if err != nil {
				t.Fatal(err)
			}
			if late := time.Since(begun) - away; late > 500*time.Millisecond {
				t.Errorf("away for %v: the session was there %v after the server", away, late)
			}
			c.Close()
			l.Close()
			<-served
		})
	}
}

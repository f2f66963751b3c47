package record

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestHandshakesBeginInTurn: while as many as may are beginning, a client is not
// answered, and nothing is kept of it; it gets its session once one of them is
// answered.
func TestHandshakesBeginInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		l, err := Listen(n.listen("192.0.2.1:4433"), serverConfig())
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- l.Serve(context.Background()) }()
		var leave func()
		for range cap(l.beginning) {
			var ok bool
			if leave, ok = l.beginning.enter(); !ok {
				t.Fatal("fewer may begin than there are places")
			}
		}
		type dialled struct {
			conn *Conn
			err  error
			at   time.Time
		}
		done := make(chan dialled, 1)
		go func() {
			c, err := Client(context.Background(), n.listen("198.51.100.1:1000"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:4433")), clientConfig())
			done <- dialled{c, err, time.Now()}
		}()
		time.Sleep(2 * time.Second)
		if got, under := l.Sessions(), l.handshakes.Len(); got != 0 || under != 0 {
			t.Errorf("%d sessions and %d handshakes are kept of a client that waits, want none", got, under)
		}
		select {
		case d := <-done:
			t.Fatalf("a client was served before its turn: %v", d.err)
		default:
		}
		leave()
		left := time.Now()
		d := <-done
		if d.err != nil {
			t.Fatal(d.err)
		}
		if late := d.at.Sub(left); late > time.Second {
			t.Errorf("its session was there %v after its turn came", late)
		}
		synctest.Wait()
		if got, want := len(l.beginning), cap(l.beginning)-1; got != want {
			t.Errorf("%d are said to begin after one has, want %d", got, want)
		}
		d.conn.Close()
		l.Close()
		<-served
	})
}

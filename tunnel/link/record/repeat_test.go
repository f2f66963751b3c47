package record

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// lastFlight runs a listener in a bubble. Whoever dials says nothing after the
// handshake, so that the server stays ready to repeat its last flight; forge writes as
// that client would. seen is told of each datagram, and says whether it arrives and
// after how long.
func lastFlight(t *testing.T, seen func(fromServer bool, p []byte) (bool, time.Duration), test func(l *Listener, dial func(Config) *Conn, forge func(p []byte))) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		l, err := Listen(n.listen("192.0.2.1:4433"), serverConfig())
		if err != nil {
			t.Fatal(err)
		}
		n.setJudge(func(from, _ netip.AddrPort, p []byte) (bool, time.Duration) { return seen(from.Port() == 4433, p) })
		served := make(chan error, 1)
		go func() { served <- l.Serve(context.Background()) }()
		sock := n.listen("198.51.100.1:1000")
		test(l, func(cfg Config) *Conn {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			c, err := Client(ctx, sock, l.Addr(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}, func(p []byte) {
			forger := &memSock{net: n, addr: sock.addr, done: make(chan struct{})}
			_, _ = forger.WriteTo(p, l.Addr()) // never fails
		})
		l.Close()
		<-served
		synctest.Wait()
	})
}

// epochs reports whether a datagram has records in the clear, and sealed ones.
func epochs(p []byte) (plain, sealed bool) {
	for r, rest, ok := parse(p, cidSize); ok; r, rest, ok = parse(rest, cidSize) {
		plain = plain || r.epoch() == 0
		sealed = sealed || r.epoch() == 1
	}
	return plain, sealed
}

// TestForgedAlertsEndNoHandshake: who has lost the server's last flight gets it again,
// whatever others have written meanwhile who know the client's address.
func TestForgedAlertsEndNoHandshake(t *testing.T) {
	lost := 0
	var forgeAlerts func()
	seen := func(fromServer bool, p []byte) (bool, time.Duration) {
		if _, sealed := epochs(p); fromServer && sealed && lost < 2 {
			lost++
			time.AfterFunc(0, forgeAlerts)
			return false, 0
		}
		return true, 5 * time.Millisecond
	}
	lastFlight(t, seen, func(l *Listener, dial func(Config) *Conn, forge func(p []byte)) {
		forgeAlerts = func() {
			for _, words := range [][]byte{{alertFatal, alertInternalError}, {1, alertCloseNotify}} {
				p := plainRecord(typeAlert, 0, headerSize+2)
				copy(p[headerSize:], words)
				forge(p)
			}
		}
		c := dial(clientConfig())
		s, err := l.Accept(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		atS := receiveAll(s)
		send(t, c, "all the same")
		atS.wait(t, 1)
		if lost != 2 {
			t.Errorf("%d datagrams with the server's Finished were lost, want 2", lost)
		}
		c.Close()
	})
}

// TestRepeatsAreBounded: an address that a stranger only claims to have is not sent the
// server's last flight over and over.
func TestRepeatsAreBounded(t *testing.T) {
	var flight []byte // of the client's last, what is in the clear
	repeats := 0
	seen := func(fromServer bool, p []byte) (bool, time.Duration) {
		if r, _, _ := parse(p, cidSize); fromServer {
			repeats++
		} else if r.typ == typeHandshake && r.epoch() == 0 && r.body[0] != clientHello {
			flight = append([]byte(nil), r.whole...)
		}
		return true, 5 * time.Millisecond
	}
	lastFlight(t, seen, func(l *Listener, dial func(Config) *Conn, forge func(p []byte)) {
		c := dial(clientConfig())
		repeats = 0
		for i := range 500 {
			binary.BigEndian.PutUint16(flight[9:], uint16(100+i)) // a record that did not come before
			forge(flight)
			time.Sleep(20 * time.Millisecond)
		}
		if repeats == 0 || repeats > 2*maxRepeats {
			t.Errorf("%d datagrams were sent upon 500, want some and %d at most", repeats, 2*maxRepeats)
		}
		c.Close()
	})
}

// TestRecordsBeforeTheFinishedWait: what overtakes the end of the server's handshake, as
// the first that it says may, is not lost.
func TestRecordsBeforeTheFinishedWait(t *testing.T) {
	seen := func(fromServer bool, p []byte) (bool, time.Duration) {
		if plain, _ := epochs(p); fromServer && plain {
			return true, 50 * time.Millisecond
		}
		return true, 5 * time.Millisecond
	}
	for name, plain := range map[string]bool{"with connection IDs": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			lastFlight(t, seen, func(l *Listener, dial func(Config) *Conn, _ func(p []byte)) {
				go func() {
					if s, err := l.Accept(context.Background()); err == nil {
						send(t, s, "first")
					}
				}()
				cfg := clientConfig()
				cfg.NoConnectionID = plain
				c := dial(cfg)
				receiveAll(c).wait(t, 1)
				c.Close()
			})
		})
	}
}

// TestAClientThatGoesAtOnceIsNoticed: its place is not held for it.
func TestAClientThatGoesAtOnceIsNoticed(t *testing.T) {
	for name, plain := range map[string]bool{"with connection IDs": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			seen := func(bool, []byte) (bool, time.Duration) { return true, 5 * time.Millisecond }
			lastFlight(t, seen, func(l *Listener, dial func(Config) *Conn, _ func(p []byte)) {
				cfg := clientConfig()
				cfg.NoConnectionID = plain
				c := dial(cfg)
				s, err := l.Accept(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				atS := receiveAll(s)
				c.Close()
				if err := atS.end(t); !errors.Is(err, ErrPeerClosed) {
					t.Errorf("the session ended by %v, want that the peer closed it", err)
				}
			})
		})
	}
}

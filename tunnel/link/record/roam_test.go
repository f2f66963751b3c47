package record

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestRebindWhileDataFlows(t *testing.T) {
	leakCheck(t)
	c, s := pair(t, udpSocket(t), udpSocket(t), clientConfig(), serverConfig())
	atC, atS := receiveAll(c), receiveAll(s)
	sum, back := sha256.New(), 0
	for round := range 6 {
		for i := range 20 {
			text := fmt.Sprintf("round %d packet %d", round, i)
			sum.Write([]byte(text))
			send(t, c, text)
			atS.wait(t, round*20+i+1)
			send(t, s, fmt.Sprintf("%d/%d", round, i))
			back++
		}
		if round == 5 {
			break
		}
		was := c.LocalAddr().String()
		if err := c.Rebind(udpSocket(t)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.PathChanged():
		case <-time.After(patience):
			t.Fatal("the client's new path was not proven")
		}
		select {
		case <-s.PathChanged():
		case <-time.After(patience):
			t.Fatal("the server did not follow")
		}
		// What was under way to the address just left is still read.
		atC.wait(t, back)
		if c.LocalAddr().String() == was || s.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("client was at %s and is at %v, server sends to %v", was, c.LocalAddr(), s.RemoteAddr())
		}
	}
	got := sha256.New()
	for _, text := range atS.wait(t, 120) {
		got.Write([]byte(text))
	}
	if string(got.Sum(nil)) != string(sum.Sum(nil)) {
		t.Error("the server got other bytes")
	}
	atC.wait(t, back)
}

// bubble runs a listener and a client's session in virtual time.
func bubble(t *testing.T, judge func(from, to netip.AddrPort, p []byte) (bool, time.Duration), f func(n *memNet, c, s *Conn, atC, atS *inbox)) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		n.judge = judge
		l, err := Listen(n.listen("192.0.2.1:4433"), serverConfig())
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- l.Serve(context.Background()) }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := Client(ctx, n.listen("198.51.100.1:1000"), l.Addr(), clientConfig())
		for port := 1001; errors.Is(err, ErrStalled); port++ { // as package link does
			c, err = Client(ctx, n.listen(fmt.Sprintf("198.51.100.1:%d", port)), l.Addr(), clientConfig())
		}
		if err != nil {
			t.Fatal(err)
		}
		atC := receiveAll(c)
		// A client that says nothing leaves the server with a handshake that
		// may still have to be repeated; ours always speak first.
		var s *Conn
		for s == nil {
			send(t, c, "first")
			actx, cancel := context.WithTimeout(ctx, time.Second)
			s, _ = l.Accept(actx)
			cancel()
			if ctx.Err() != nil {
				t.Fatal("no session at the server")
			}
		}
		atS := receiveAll(s)
		f(n, c, s, atC, atS)
		c.Close()
		l.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		synctest.Wait()
	})
}

func TestHandshakeOutlivesLoss(t *testing.T) {
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 1))
		judge := func(_, _ netip.AddrPort, _ []byte) (bool, time.Duration) {
			return rng.Float64() > 0.25, time.Duration(20+rng.IntN(60)) * time.Millisecond
		}
		bubble(t, judge, func(n *memNet, c, s *Conn, atC, atS *inbox) {
			n.setJudge(nil)
			send(t, c, "after the loss")
			send(t, s, "likewise")
			atC.wait(t, 1)
			atS.wait(t, 1)
		})
	}
}

func TestLostFinishedIsRepeated(t *testing.T) {
	server := netip.MustParseAddrPort("192.0.2.1:4433")
	lost := 0
	judge := func(from, _ netip.AddrPort, p []byte) (bool, time.Duration) {
		for rest := p; len(rest) > 0 && from == server && lost < 2; {
			r, after, ok := parse(rest, cidSize)
			if !ok {
				break
			}
			if r.epoch() == 1 { // the server's Finished
				lost++
				return false, 0
			}
			rest = after
		}
		return true, 10 * time.Millisecond
	}
	bubble(t, judge, func(_ *memNet, c, s *Conn, atC, atS *inbox) {
		send(t, s, "hello")
		atC.wait(t, 1)
	})
	if lost != 2 {
		t.Errorf("%d datagrams with the server's Finished were lost, want 2", lost)
	}
}

func TestUnprovenAddressGetsOnlyChallenges(t *testing.T) {
	bubble(t, nil, func(n *memNet, c, s *Conn, atC, atS *inbox) {
		thief := netip.MustParseAddrPort("203.0.113.9:7")
		home := netip.MustParseAddrPort(c.LocalAddr().String())
		var in, out, asked int // bytes from and to the thief's address, and datagrams to it
		n.setJudge(func(from, to netip.AddrPort, p []byte) (bool, time.Duration) {
			switch {
			case to == thief:
				out += len(p)
				asked++
				return false, 0
			case from == thief:
				in += len(p)
			case from == home:
				return false, 0 // the thief takes the client's datagrams
			}
			return true, 5 * time.Millisecond
		})
		tap := &memSock{net: n, addr: thief, done: make(chan struct{})}
		const packets, apart = 50, 20 * time.Millisecond
		for range packets {
			p := packet(c, "taken and sent from elsewhere")
			if _, err := c.seal([][]byte{p}, typeApplication); err != nil {
				t.Fatal(err)
			}
			if _, err := tap.WriteTo(p, s.listener.Addr()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(apart)
			send(t, s, "to the owner")
		}
		atC.wait(t, packets)
		if s.RemoteAddr().String() != home.String() {
			t.Errorf("the server follows %v, which answered nothing", s.RemoteAddr())
		}
		if out == 0 || out > in {
			t.Errorf("%d bytes went to an address that sent %d, want some and no more", out, in)
		}
		if most := 1 + int(packets*apart/challengeEvery); asked < most/2 || asked > most {
			t.Errorf("it was asked %d times, want about %d: as often as a lost question needs it, and no more", asked, most)
		}
	})
}

// TestChallengesFromAnUnprovenAddressAreHardlyMore: one that asks, each time from
// another port, is asked and answered, and gets twice what it sent at most.
func TestChallengesFromAnUnprovenAddressAreHardlyMore(t *testing.T) {
	bubble(t, nil, func(n *memNet, c, s *Conn, atC, atS *inbox) {
		thief := netip.MustParseAddr("203.0.113.9")
		var in, out int // bytes from and to the thief's address
		n.setJudge(func(from, to netip.AddrPort, p []byte) (bool, time.Duration) {
			switch {
			case to.Addr() == thief:
				out += len(p)
				return false, 0
			case from.Addr() == thief:
				in += len(p)
			}
			return true, 5 * time.Millisecond
		})
		for i := range 50 {
			p := make([]byte, c.out.head+pathSize+c.out.tail)
			p[c.out.head] = pathChallenge
			c.sendMu.Lock()
			c.out.seal(p, typeApplication, epoch1|(controlBase+c.ctl))
			c.ctl++
			c.sendMu.Unlock()
			tap := &memSock{net: n, addr: netip.AddrPortFrom(thief, uint16(7+i)), done: make(chan struct{})}
			if _, err := tap.WriteTo(p, s.listener.Addr()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		send(t, s, "to the owner")
		atC.wait(t, 1)
		if out <= in || out > 2*in {
			t.Errorf("%d bytes went to an address that sent %d, want at most twice as many, and not fewer", out, in)
		}
	})
}

func TestServerFollowsAClientWhoseNATForgotIt(t *testing.T) {
	bubble(t, nil, func(n *memNet, c, s *Conn, atC, atS *inbox) {
		for i, outer := range []string{"203.0.113.1:5000", "203.0.113.1:5001", "203.0.113.2:5000"} {
			n.remap(c.LocalAddr().String(), outer)
			have := len(atC.wait(t, i))
			send(t, c, "from a new port, of which the client knows nothing")
			<-s.PathChanged()
			if got := s.RemoteAddr().String(); got != outer {
				t.Errorf("the server sends to %s, want %s", got, outer)
			}
			send(t, s, "found you")
			atC.wait(t, have+1)
		}
	})
}

func TestOldRecordFromElsewhereMovesNothing(t *testing.T) {
	bubble(t, nil, func(n *memNet, c, s *Conn, atC, atS *inbox) {
		late := packet(c, "late")
		if _, err := c.seal([][]byte{late}, typeApplication); err != nil {
			t.Fatal(err)
		}
		send(t, c, "newer")
		have := len(atS.wait(t, 1))
		time.Sleep(time.Second)
		old := &memSock{net: n, addr: netip.MustParseAddrPort("203.0.113.9:7"), done: make(chan struct{})}
		challenged := false
		n.setJudge(func(_, to netip.AddrPort, _ []byte) (bool, time.Duration) {
			challenged = challenged || to == old.addr
			return true, 0
		})
		if _, err := old.WriteTo(late, s.listener.Addr()); err != nil {
			t.Fatal(err)
		}
		atS.wait(t, have+1)
		time.Sleep(time.Second)
		if challenged {
			t.Error("a record that is not the newest made the server ask its address")
		}
	})
}

func TestRebindOutlivesLossOfItsFirstMessages(t *testing.T) {
	bubble(t, nil, func(n *memNet, c, s *Conn, atC, atS *inbox) {
		lost := 0
		n.setJudge(func(_, _ netip.AddrPort, _ []byte) (bool, time.Duration) {
			lost++
			return lost > 3, 20 * time.Millisecond
		})
		if err := c.Rebind(n.listen("198.51.100.2:2000")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		<-c.PathChanged()
		<-s.PathChanged()
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("the new path took %v", d)
		}
		if got := s.RemoteAddr().String(); got != "198.51.100.2:2000" {
			t.Errorf("the server sends to %s", got)
		}
		send(t, s, "there you are")
		atC.wait(t, 1)
	})
}

func TestRebindNeedsConnectionIDs(t *testing.T) {
	leakCheck(t)
	ccfg := clientConfig()
	ccfg.NoConnectionID = true
	c, s := pair(t, udpSocket(t), udpSocket(t), ccfg, serverConfig())
	next := udpSocket(t)
	if err := c.Rebind(next); err == nil {
		t.Error("a session without connection IDs moved")
	}
	if _, err := next.WriteTo([]byte{1}, s.LocalAddr()); err == nil {
		t.Error("the refused socket was left open")
	}
	if err := s.Rebind(udpSocket(t)); err == nil {
		t.Error("a server's session moved")
	}
}

func TestClientGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := Client(ctx, n.listen("198.51.100.1:1000"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:4433")), clientConfig())
		if err == nil || ctx.Err() == nil {
			t.Fatalf("got %v", err)
		}
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func TestSilentHandshakeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		l, err := Listen(n.listen("192.0.2.1:4433"), serverConfig())
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- l.Serve(context.Background()) }()
		answers := 0
		n.setJudge(func(from, _ netip.AddrPort, _ []byte) (bool, time.Duration) {
			if from.Port() == 4433 {
				answers++
				return answers == 1, 0 // only the cookie gets through
			}
			return true, 0
		})
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err = Client(ctx, n.listen("198.51.100.1:1000"), l.Addr(), clientConfig())
		cancel()
		if err == nil {
			t.Fatal("a handshake without answers ended well")
		}
		if l.Sessions() != 1 {
			t.Errorf("%d sessions, want the one in its handshake", l.Sessions())
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if l.Sessions() != 0 {
			t.Errorf("%d sessions are left after the handshake's time", l.Sessions())
		}
		l.Close()
		<-served
	})
}

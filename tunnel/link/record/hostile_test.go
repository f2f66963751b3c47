package record

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"adit/internal/udpbatch"
)

// tap is a socket whose outgoing datagrams a test can keep, change and repeat.
// Without a type that is known, it is read and written one at a time.
type tap struct {
	net.PacketConn
	mu   sync.Mutex
	hook func(p []byte) [][]byte // what is sent instead of p
}

func (t *tap) WriteTo(p []byte, to net.Addr) (int, error) {
	t.mu.Lock()
	out := [][]byte{p}
	if t.hook != nil {
		out = t.hook(bytes.Clone(p))
	}
	t.mu.Unlock()
	for _, q := range out {
		if _, err := t.PacketConn.WriteTo(q, to); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (t *tap) set(hook func(p []byte) [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hook = hook
}

func TestForgedAndReplayedRecordsChangeNothing(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain %v", plain), func(t *testing.T) { forgeAndReplay(t, plain) })
	}
}

func forgeAndReplay(t *testing.T, plain bool) {
	leakCheck(t)
	out := &tap{PacketConn: udpSocket(t)}
	ccfg := clientConfig()
	ccfg.NoConnectionID = plain
	c, s := pair(t, out, udpSocket(t), ccfg, serverConfig())
	box := receiveAll(s)
	rng := rand.New(rand.NewPCG(3, 4))
	var kept [][]byte
	out.set(func(p []byte) [][]byte {
		kept = append(kept, bytes.Clone(p))
		var bad [][]byte
		for cut := range 4 { // truncated
			bad = append(bad, p[:rng.IntN(len(p)-cut)])
		}
		for range 8 { // one bit changed anywhere
			q := bytes.Clone(p)
			q[rng.IntN(len(q))] ^= 1 << rng.IntN(8)
			bad = append(bad, q)
		}
		longer := append(bytes.Clone(p), 1, 2, 3) // a record and rubbish behind it
		bad = append(bad, longer, p, p)
		bad = append(bad, kept[rng.IntN(len(kept))]) // replayed
		for _, typ := range []byte{typeAlert, typeHandshake, typeCCS, typeApplication} {
			q := bytes.Clone(p)
			q[0] = typ
			bad = append(bad, q)
			fake := []byte{typ, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40} // epoch 0, a fatal alert
			bad = append(bad, fake)
		}
		return bad
	})
	const n = 200
	for i := range n {
		send(t, c, string(rune('a'+i%26)))
		box.wait(t, i+1)
	}
	out.set(nil)
	send(t, c, "end")
	got := box.wait(t, n+1)
	for i := range n {
		if got[i] != string(rune('a'+i%26)) || box.nums[i] != uint64(i) {
			t.Fatalf("packet %d: got %q with number %d", i, got[i], box.nums[i])
		}
	}
	if len(got) != n+1 || s.Err() != nil || c.Err() != nil {
		t.Errorf("got %d packets, want %d; server %v, client %v", len(got), n+1, s.Err(), c.Err())
	}
	c.Close()
	box.end(t)
}

func TestReorderedRecordsArriveOnce(t *testing.T) {
	leakCheck(t)
	out := &tap{PacketConn: udpSocket(t)}
	c, s := pair(t, out, udpSocket(t), clientConfig(), serverConfig())
	box := receiveAll(s)
	var kept [][]byte
	out.set(func(p []byte) [][]byte { kept = append(kept, p); return nil })
	const n = 300
	for i := range n {
		send(t, c, string([]byte{byte(i % 200), 1}))
	}
	order := rand.New(rand.NewPCG(5, 6)).Perm(n)
	for round := range 2 {
		for i, at := range order {
			if _, err := out.PacketConn.WriteTo(kept[at], s.listener.Addr()); err != nil {
				t.Fatal(err)
			}
			if round == 0 && i%32 == 31 {
				box.wait(t, i+1)
			}
		}
	}
	out.set(nil)
	send(t, c, "end")
	got := box.wait(t, n+1)
	seen := map[uint64]bool{}
	for _, number := range box.nums {
		if seen[number] {
			t.Fatalf("record %d came twice", number)
		}
		seen[number] = true
	}
	if len(got) != n+1 {
		t.Errorf("got %d packets, want %d", len(got), n+1)
	}
}

func TestListenerIgnoresRubbish(t *testing.T) {
	leakCheck(t)
	l := startListener(t, udpSocket(t), serverConfig())
	stranger := udpSocket(t)
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 3000 {
		p := make([]byte, rng.IntN(1300))
		for j := range p {
			p[j] = byte(rng.Uint32())
		}
		if i%2 == 0 && len(p) > 14 { // looks like a record
			copy(p, []byte{[]byte{20, 21, 22, 23, 25}[i%5], 0xfe, 0xfd})
			if i%3 == 0 {
				p[3], p[4] = 0, 0
				p[13] = clientHello
				binary.BigEndian.PutUint16(p[11:], uint16(len(p)-13))
			}
		}
		if _, err := stranger.WriteTo(p, l.Addr()); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.Sessions(); n != 0 {
		t.Errorf("rubbish made %d sessions", n)
	}
	c, s := connect(t, l, udpSocket(t), clientConfig())
	box := receiveAll(s)
	send(t, c, "still here")
	box.wait(t, 1)
}

// makeHello is a ClientHello as the first datagram of a client has it.
func makeHello(t *testing.T) []byte {
	t.Helper()
	got := make(chan []byte, 1)
	out := &tap{PacketConn: udpSocket(t)}
	out.set(func(p []byte) [][]byte {
		select {
		case got <- p:
		default:
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = Client(ctx, out, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, clientConfig())
	}()
	p := <-got
	cancel()
	<-done
	return p
}

func TestFloodOfHellosIsAnsweredButNotKept(t *testing.T) {
	leakCheck(t)
	hello := makeHello(t)
	l := startListener(t, udpSocket(t), serverConfig())
	stranger := udpSocket(t)
	answer := make([]byte, 2000)
	for range 500 {
		if _, err := stranger.WriteTo(hello, l.Addr()); err != nil {
			t.Fatal(err)
		}
		_ = stranger.SetReadDeadline(time.Now().Add(patience))
		n, _, err := stranger.ReadFrom(answer)
		if err != nil {
			t.Fatal(err)
		}
		if answer[headerSize] != helloVerifyRequest || n > len(hello) {
			t.Fatalf("answer of %d bytes to %d, message type %d", n, len(hello), answer[headerSize])
		}
	}
	if n := l.Sessions(); n != 0 {
		t.Errorf("a flood without cookies made %d sessions", n)
	}
	h, ok := parseHello(hello)
	if !ok {
		t.Fatal("a client's own hello is not understood")
	}
	jar := newCookies()
	from := udpbatch.AddrOf(stranger.LocalAddr())
	if n := testing.AllocsPerRun(100, func() { jar.request(h, from.AddrPort, time.Now()) }); n > 0 {
		t.Errorf("answering a hello allocates %v times", n)
	}
}

// withCookie answers the listener's request as a client would.
func withCookie(hello, request []byte) []byte {
	h, _ := parseHello(hello)
	cookie := request[helloHeader+3:]
	p := append(bytes.Clone(hello[:h.at]), byte(len(cookie)))
	p = append(append(p, cookie...), hello[h.at+1:]...)
	p[10] = 1           // record number
	p[headerSize+5] = 1 // message number
	n := len(p) - helloHeader
	for _, at := range []int{headerSize + 2, headerSize + 10} {
		binary.BigEndian.PutUint16(p[at:], uint16(n))
	}
	binary.BigEndian.PutUint16(p[11:], uint16(len(p)-headerSize))
	return p
}

// stall begins a handshake from a socket and breaks it off once the cookie is
// returned.
func stall(t *testing.T, l *Listener, s net.PacketConn, hello []byte) {
	t.Helper()
	answer := make([]byte, 2000)
	_ = s.SetReadDeadline(time.Now().Add(patience))
	if _, err := s.WriteTo(hello, l.Addr()); err != nil {
		t.Fatal(err)
	}
	n, _, err := s.ReadFrom(answer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteTo(withCookie(hello, answer[:n]), l.Addr()); err != nil {
		t.Fatal(err)
	}
	// A second hello without a cookie shows that the first was dealt with.
	if _, err := s.WriteTo(hello, l.Addr()); err != nil {
		t.Fatal(err)
	}
	for {
		n, _, err := s.ReadFrom(answer)
		if err != nil {
			t.Fatal(err)
		}
		if n > headerSize && answer[headerSize] == helloVerifyRequest {
			return
		}
	}
}

func TestHandshakesAreBounded(t *testing.T) {
	for _, bound := range []string{"per address", "in total"} {
		t.Run(bound, func(t *testing.T) { boundedHandshakes(t, bound) })
	}
}

func boundedHandshakes(t *testing.T, bound string) {
	leakCheck(t)
	cfg := serverConfig()
	cfg.HandshakeTimeout = time.Minute
	if bound == "per address" {
		cfg.MaxHandshakesPerAddress = 4
	} else {
		cfg.MaxHandshakes = 4
	}
	l := startListener(t, udpSocket(t), cfg)
	hello := makeHello(t)
	for range 20 { // each from its own port
		stall(t, l, udpSocket(t), hello)
	}
	if running := l.handshakes.Len(); running != 4 {
		t.Errorf("%s: %d handshakes are under way, want 4", bound, running)
	}
}

func TestCookieServesItsAddressAndTimeOnly(t *testing.T) {
	jar := newCookies()
	now := time.Now()
	a := udpbatch.AddrOf(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1000}).AddrPort
	b := udpbatch.AddrOf(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1001}).AddrPort
	h := hello{random: bytes.Repeat([]byte{7}, 32)}
	h.cookie = bytes.Clone(jar.make(nil, jar.period(now), a, h.random))
	c := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"), a.Port())
	other, renewed, later := h, h, now.Add(3*cookieLife)
	other.random = bytes.Repeat([]byte{8}, 32)
	renewed.cookie = binary.BigEndian.AppendUint32(nil, jar.period(later))
	renewed.cookie = append(renewed.cookie, h.cookie[4:]...)
	for _, c := range []struct {
		name string
		ok   bool
		got  bool
	}{
		{"its own", true, jar.valid(h, a, now)},
		{"next period", true, jar.valid(h, a, now.Add(cookieLife))},
		{"too old", false, jar.valid(h, a, now.Add(3*cookieLife))},
		{"too old, its time changed", false, jar.valid(renewed, a, later)},
		{"another port", false, jar.valid(h, b, now)},
		{"another address", false, jar.valid(h, c, now)},
		{"another hello", false, jar.valid(other, a, now)},
		{"another key", false, newCookies().valid(h, a, now)},
	} {
		if c.got != c.ok {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.ok)
		}
	}
}

func TestFatalAlertEndsTheSession(t *testing.T) {
	leakCheck(t)
	c, s := pair(t, udpSocket(t), udpSocket(t), clientConfig(), serverConfig())
	box := receiveAll(s)
	c.sendAlert(1, 100) // a warning
	send(t, c, "goes on")
	box.wait(t, 1)
	c.sendAlert(alertFatal, 80)
	var alert *AlertError
	if err := box.end(t); !errors.As(err, &alert) || alert.Description != 80 {
		t.Errorf("got %v, want alert 80", err)
	}
}

func TestPacketsBeforeTheEndAreHandedOutFirst(t *testing.T) {
	leakCheck(t)
	c, s := pair(t, udpSocket(t), udpSocket(t), clientConfig(), serverConfig())
	send(t, c, "why", "it ends")
	c.Close()
	into := make([]Packet, 16)
	for got := 0; got < 2; {
		n, err := s.Receive(into)
		if err != nil {
			t.Fatalf("after %d packets: %v", got, err)
		}
		if got += n; s.Err() != nil {
			t.Fatalf("the session ended with packets in hand: %v", s.Err())
		}
	}
	if _, err := s.Receive(into); !errors.Is(err, ErrPeerClosed) {
		t.Errorf("got %v, want ErrPeerClosed", err)
	}
}

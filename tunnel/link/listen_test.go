package link

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestListenServesBothTransportsOnOnePort(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l, fingerprint := testListener(t, ListenConfig{})
	for _, transport := range []Transport{DTLS, TLS} {
		client, err := Dial(testContext(t), DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport})
		if err != nil {
			t.Fatalf("%s: %v", transport, err)
		}
		defer client.Close("over")
		if _, err := l.Accept(testContext(t)); err != nil {
			t.Fatalf("%s: accept: %v", transport, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := l.Accept(testContext(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after Close: got %v, want net.ErrClosed", err)
	}
}

func TestListenerCloseTellsTheSessions(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l, fingerprint := testListener(t, ListenConfig{})
	var clients []Session
	for _, transport := range []Transport{DTLS, TLS, DTLS} { // the last is never accepted
		client, err := Dial(testContext(t), DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport})
		if err != nil {
			t.Fatalf("%s: %v", transport, err)
		}
		clients = append(clients, client)
		if len(clients) < 3 {
			if _, err := l.Accept(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.Close()
	for i, client := range clients {
		within(t, "the end", func() { <-client.Done() })
		var closed *CloseError
		if err := client.Err(); i < 2 && (!errors.As(err, &closed) || closed.Reason != goingAway) {
			t.Errorf("session %d over %s: got %v, want the reason", i, client.Transport(), err)
		}
		client.Close("")
	}
}

// TestWhoDialsMayOpenFewerStreams: what is held for a stranger is bounded, and
// who listens opens as many as ever.
func TestWhoDialsMayOpenFewerStreams(t *testing.T) {
	const most = 1024
	l, fingerprint := testListener(t, ListenConfig{PeerStreams: most})
	defer l.Close()
	for _, transport := range []Transport{DTLS, TLS} {
		client, err := Dial(testContext(t), DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close("over")
		server, err := l.Accept(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		open := func(from, to Session) error {
			st, err := from.OpenStream(testContext(t))
			if err != nil {
				return err
			}
			if _, err := st.Write([]byte("x")); err != nil {
				return err
			}
			_, err = to.AcceptStream(testContext(t))
			return err
		}
		for i := range most {
			if err := open(client, server); err != nil {
				t.Fatalf("%s: stream %d: %v", transport, i, err)
			}
		}
		for i := range most + 10 {
			if err := open(server, client); err != nil {
				t.Fatalf("%s: stream %d of who listens: %v", transport, i, err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		st, err := client.OpenStream(ctx) // over DTLS it waits
		cancel()
		if err == nil {
			st.Write([]byte("x"))
			st.SetReadDeadline(time.Now().Add(20 * time.Second))
			_, err = st.Read(make([]byte, 1))
		}
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrReset) {
			t.Errorf("%s: one stream more: got %v", transport, err)
		}
	}
}

func TestListenRefuses(t *testing.T) {
	l, _ := testListener(t, ListenConfig{})
	defer l.Close()
	authority := newTestAuthority(t)
	cert, err := authority.Issue("x")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tests := map[string]ListenConfig{
		"no certificate":    {Addr: "127.0.0.1:0"},
		"a port in use":     {Addr: l.Addr().String(), Certificate: cert},
		"a UDP port in use": {Addr: udp.LocalAddr().String(), Certificate: cert},
		"no such address":   {Addr: "192.0.2.1:1", Certificate: cert},
	}
	for name, cfg := range tests {
		if l, err := Listen(cfg); err == nil {
			l.Close()
			t.Errorf("%s: listens", name)
		} else if !strings.HasPrefix(err.Error(), "listen") {
			t.Errorf("%s: got %v, want it to say that listening did not work", name, err)
		}
	}
}

func TestTooManySessionsAreToldSo(t *testing.T) {
	for _, transport := range []Transport{DTLS, TLS} {
		l, fingerprint := testListener(t, ListenConfig{MaxSessions: 2})
		cfg := DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport}
		for range 2 {
			client, err := Dial(testContext(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close("over")
			if _, err := l.Accept(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		client, err := Dial(ctx, cfg)
		if err == nil { // over DTLS the handshake itself is not answered
			within(t, "the refusal", func() { <-client.Done() })
			var closed *CloseError
			if !errors.As(client.Err(), &closed) {
				t.Errorf("%s: got %v, want a reason", transport, client.Err())
			}
			client.Close("")
		}
		cancel()
		l.Close()
	}
}

// TestSilentHandshakesAreLimited holds connections that say nothing, as many as
// one address may have, and finds the next one closed at once.
func TestSilentHandshakesAreLimited(t *testing.T) {
	const limit = 3
	l, _ := testListener(t, ListenConfig{MaxHandshakes: limit})
	defer l.Close()
	for range limit {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	wait(t, "the handshakes", patience, func() bool {
		return l.handshakes.Len() == limit
	})
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF && !strings.Contains(err.Error(), "reset") {
		t.Errorf("one too many: got %v, want the connection closed", err)
	}
	if h := l.Handshakes(); h.TurnedAway != 1 { // one that was let in is closed when its time is over
		t.Errorf("got %+v, want one turned away", h)
	}
}

// TestAFloodFromManyAddressesKeepsNobodyOut holds as many silent connections as
// there are places, from many addresses, and has an agent come all the same, by
// either transport.
func TestAFloodFromManyAddressesKeepsNobodyOut(t *testing.T) {
	l, fingerprint := testListener(t, ListenConfig{})
	defer l.Close()
	var cut atomic.Int32
	for i := range maxHandshakesTotal {
		peer := &net.TCPAddr{IP: net.IPv4(10, 9, byte(i/64), 1), Port: 1 + i}
		if _, ok := l.admit(peer, func() { cut.Add(1) }); !ok {
			t.Fatalf("%v was turned away", peer)
		}
	}
	for i, kind := range []Transport{TLS, DTLS} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		accepted := make(chan error, 1)
		go func() {
			s, err := l.Accept(ctx)
			if err == nil {
				defer s.Close("test over")
			}
			accepted <- err
		}()
		s, err := Dial(ctx, DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: kind})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if err := <-accepted; err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		s.Close("test over")
		cancel()
		wait(t, "the place is given back", patience, func() bool { return l.handshakes.Len() == maxHandshakesTotal-1 })
		if got := cut.Load(); got != 1 {
			t.Errorf("%s: %d were cut after %d agents, want 1", kind, got, i+1)
		}
	}
	if h := l.Handshakes(); h.TurnedAway != 1 || h.Done != 2 {
		t.Errorf("got %+v", h)
	}
}

package link

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// testListener listens with a certificate of a new authority and gives its fingerprint.
func testListener(t *testing.T, cfg ListenConfig) (*Listener, [32]byte) {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Certificate, err = authority.Issue("localhost"); err != nil {
		t.Fatal(err)
	}
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	l, err := Listen(cfg)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	return l, authority.Fingerprint()
}

// holedConn is a connection whose path can be cut: nothing gets through, not
// even the end of the connection.
type holedConn struct {
	net.Conn
	cut    *atomic.Bool
	closed chan struct{}
	once   *sync.Once
}

func newHoledConn(conn net.Conn, cut *atomic.Bool) holedConn {
	return holedConn{conn, cut, make(chan struct{}), new(sync.Once)}
}

func (c holedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() && !errors.Is(err, os.ErrDeadlineExceeded) {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c holedConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c holedConn) SetDeadline(t time.Time) error {
	if c.cut.Load() {
		c.once.Do(func() { close(c.closed) })
	}
	return c.Conn.SetDeadline(t)
}

func (c holedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestSessionOverTLS(t *testing.T) {
	testSession(t, inRealTime, func(t *testing.T) pair {
		l, fingerprint := testListener(t, ListenConfig{KeepAlive: time.Second})
		var cut atomic.Bool
		client, err := Dial(t.Context(), DialConfig{
			Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: TLS, KeepAlive: time.Second,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return newHoledConn(conn, &cut), nil
			},
		})
		if err != nil {
			t.Fatalf("dial: %v", err)
		}
		server, err := l.Accept(testContext(t))
		if err != nil {
			t.Fatalf("accept: %v", err)
		}
		if client.Transport() != TLS || server.Transport() != TLS {
			t.Errorf("got transports %q and %q, want tls", client.Transport(), server.Transport())
		}
		return pair{client, server, func() { cut.Store(true) }, func() { l.Close() }}
	})
}

func TestDialRefusesAnotherAuthority(t *testing.T) {
	for _, transport := range []Transport{DTLS, TLS, Auto} {
		l, fingerprint := testListener(t, ListenConfig{})
		fingerprint[0] ^= 1
		_, err := Dial(testContext(t), DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport})
		if !errors.Is(err, ErrUntrusted) {
			t.Errorf("%q: got %v, want ErrUntrusted", transport, err)
		}
		l.Close()
	}
}

// Whatever else may answer at the relay's address is told from a relay that is down.
func TestAnotherServerIsNoRelay(t *testing.T) {
	own := newTestAuthority(t)
	cert, err := own.Issue("localhost") // of the right authority, even: it is the protocol that tells
	if err != nil {
		t.Fatal(err)
	}
	handshake := func(c net.Conn, config *tls.Config) {
		config.Certificates = []tls.Certificate{cert}
		_ = tls.Server(c, config).Handshake() // which fails
	}
	for name, answer := range map[string]func(net.Conn){
		"no TLS":           func(c net.Conn) { io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: http://login.example/\r\n\r\n") },
		"another protocol": func(c net.Conn) { handshake(c, &tls.Config{NextProtos: []string{"http/1.1"}}) },
		"an older version": func(c net.Conn) { handshake(c, &tls.Config{MaxVersion: tls.VersionTLS12}) },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				answer(c)
				io.Copy(io.Discard, c)
				c.Close()
			}
		}()
		for _, transport := range []Transport{TLS, Auto} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err = Dial(ctx, DialConfig{Relay: l.Addr().String(), Fingerprint: own.Fingerprint(), Transport: transport})
			cancel()
			if !errors.Is(err, ErrNoRelay) {
				t.Errorf("%s, over %q: got %v, want ErrNoRelay", name, transport, err)
			}
		}
		l.Close()
	}
}

package relay

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// told is a connection that reports when something was sent on it.
type told struct {
	net.Conn
	once sync.Once
	sent chan struct{}
}

func (c *told) Write(p []byte) (int, error) {
	defer c.once.Do(func() { close(c.sent) })
	return c.Conn.Write(p)
}

// TestConnectionsWaitWhileAnAgentIsRestarted connects to a port, to a site with its own
// TLS, and to a private tunnel, about which no other client learns more than before.
func TestConnectionsWaitWhileAnAgentIsRestarted(t *testing.T) {
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), visitorGrace: patience})
	token := r.client(t, "nas")
	laptop, stranger := connect(t, r.client(t, "laptop"), "i1"), connect(t, r.client(t, "stranger"), "i1")
	cert, err := r.authority.Issue("secret.relay.test")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	site := &http.Server{Handler: text("end to end")}
	go site.Serve(secret)
	t.Cleanup(func() { site.Close() })
	echo, greeter := startTCPEcho(t), greets(t)
	var port, sealed string
	serve := func() *fakeAgent {
		a := connect(t, token, "i1")
		port = hostOf(t, a.mustClaim("p", wire.Claim{Type: wire.TypeTCP}, echo).PublicURL)
		sealed = hostOf(t, a.mustClaim("s", wire.Claim{Type: wire.TypeTLS, Domain: "secret"}, secret.Addr().String()).PublicURL)
		a.mustClaim("t", privateClaim("ssh", "laptop"), greeter)
		return a
	}
	a := serve()
	before := port
	echoed(t, port)
	a.close()
	eventually(t, "the agent is gone", func() bool { return r.roster.Len() == 2 })
	refusedVisit(t, stranger, "nas/ssh") // at once: the agent is not back before
	var visits sync.WaitGroup
	visits.Go(func() {
		s, answer, err := laptop.visit("nas/ssh")
		if err != nil {
			t.Errorf("a visit meanwhile: %v", err)
			return
		}
		defer s.Close()
		if line, _ := answer.ReadString('\n'); line != "hello\n" {
			t.Errorf("a visit meanwhile: %q", line)
		}
	})
	waiting, err := net.Dial("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	io.WriteString(waiting, "x")
	dialled, err := net.Dial("tcp", sealed)
	if err != nil {
		t.Fatal(err)
	}
	hello := &told{Conn: dialled, sent: make(chan struct{})}
	visits.Go(func() {
		conn := tls.Client(hello, &tls.Config{ServerName: "secret.relay.test", InsecureSkipVerify: true})
		defer conn.Close()
		if err := conn.Handshake(); err != nil {
			t.Errorf("TLS meanwhile: %v", err)
		} else if got := conn.ConnectionState().PeerCertificates[0]; !got.Equal(cert.Leaf) {
			t.Errorf("the certificate is of %v, want the origin's own", got.Subject)
		}
	})
	<-hello.sent
	serve()
	if port != before {
		t.Fatalf("the tunnel is at %s, was at %s", port, before)
	}
	waiting.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(waiting, make([]byte, 1)); err != nil {
		t.Errorf("a connection meanwhile: %v", err)
	}
	visits.Wait()
	echoed(t, port) // by the same listener
}

// TestAPortIsNotKeptForLong checks that visitors do not wait long: the agent may be gone
// for good, or the tunnel may be.
func TestAPortIsNotKeptForLong(t *testing.T) {
	for what, c := range map[string]struct {
		grace time.Duration
		end   func(*testRelay)
	}{
		"the time is over":      {50 * time.Millisecond, func(*testRelay) {}},
		"its client is revoked": {time.Hour, func(r *testRelay) { r.Clients().Revoke(t.Context(), "nas") }},
		"the relay ends":        {time.Hour, func(r *testRelay) { r.stop() }},
	} {
		t.Run(what, func(t *testing.T) {
			r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), visitorGrace: c.grace})
			a := connect(t, r.client(t, "nas"), "i1")
			port := hostOf(t, a.mustClaim("p", wire.Claim{Type: wire.TypeTCP}, startTCPEcho(t)).PublicURL)
			conn := echoed(t, port)
			a.close()
			eventually(t, "the agent is gone", func() bool { return r.roster.Len() == 0 })
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("who was there goes on")
			}
			waiting, err := net.Dial("tcp", port)
			c.end(r)
			if err == nil {
				defer waiting.Close()
				waiting.SetReadDeadline(time.Now().Add(patience))
				if _, err := waiting.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("who waited: %v", err)
				}
			}
			eventually(t, "the port is closed", func() bool {
				conn, err := net.Dial("tcp", port)
				if err == nil {
					conn.Close()
				}
				return err != nil
			})
		})
	}
}

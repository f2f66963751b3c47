package relay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// deafConn is a socket at which nothing arrives while it is deaf.
type deafConn struct {
	net.PacketConn
	deaf atomic.Bool
}

func (c *deafConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil || !c.deaf.Load() {
			return n, from, err
		}
	}
}

// TestVisitorsByHTTP3AreToldOfAKilledRelay checks stateless resets: over UDP, only the
// restarted relay can tell a visitor that its connection is gone. Otherwise the visitor
// would use it until it had been silent for half a minute.
func TestVisitorsByHTTP3AreToldOfAKilledRelay(t *testing.T) {
	cfg := testConfig(t.TempDir())
	s := startSite(t, cfg, text("in"))
	cfg.EdgeHTTPSListen = s.edge.HTTPSAddr().String()
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn := &deafConn{PacketConn: socket}
	transport := &quic.Transport{Conn: conn}
	t.Cleanup(func() {
		transport.Close()
		socket.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: portOf(s.edge.HTTPSAddr())}
	dialed, err := transport.Dial(ctx, to, http3.ConfigureTLSConfig(&tls.Config{RootCAs: s.roots(t), ServerName: "shop.relay.test"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c *http3.ClientConn) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.https, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.RoundTrip(req)
	}
	c := new(http3.Transport).NewClientConn(dialed)
	resp, err := ask(c)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	conn.deaf.Store(true) // as to a relay that is killed, which says nothing
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	startRelay(t, cfg)
	conn.deaf.Store(false)
	asked := time.Now()
	if resp, err = ask(c); err == nil {
		resp.Body.Close()
		t.Fatalf("the connection outlived the relay: %s", resp.Status)
	}
	if took := time.Since(asked); took > 5*time.Second {
		t.Errorf("after %v: %v; want a word at once", took, err)
	}
}

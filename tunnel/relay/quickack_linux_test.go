package relay

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// TestVisitorsWhoHoldTheirRequestBackAreNotKeptWaiting sends requests as PHP, Perl and
// wget do: a small write waits on their side until what was written before is
// acknowledged (Nagle's algorithm), which here is the end of their handshake. The relay
// has nothing to send that would carry the acknowledgement, so on its own it would come
// 40 ms later.
func TestVisitorsWhoHoldTheirRequestBackAreNotKeptWaiting(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	for range 100 { // of which one is enough: none would be as fast by itself
		raw, err := net.Dial("tcp", s.Addrs().HTTPS)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		raw.(*net.TCPConn).SetNoDelay(false)
		c := tls.Client(raw, &tls.Config{ServerName: "shop.relay.test", RootCAs: s.roots(t), MinVersion: tls.VersionTLS13})
		if err := c.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) < 30*time.Millisecond {
			return
		}
	}
	t.Error("each of 100 took 30 ms and more")
}

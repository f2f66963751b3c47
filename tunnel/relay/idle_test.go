package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// TestIdleVisitors holds idle connections over each version of HTTP, and reports what
// each costs, including the visitor's end in this process. ADIT_IDLE_VISITORS sets how
// many.
func TestIdleVisitors(t *testing.T) {
	many := 1000
	if slowed {
		many = 200
	}
	if n, err := strconv.Atoi(os.Getenv("ADIT_IDLE_VISITORS")); err == nil {
		many = n
	}
	cfg := testConfig(t.TempDir())
	cfg.Limits.ConnectionsPerAddress = many + 100
	s := startSite(t, cfg, text("hello"))
	s.unharmed(t)
	for _, kind := range []string{"HTTP/1.1", "TLS and HTTP/1.1", "TLS and HTTP/2", "HTTP/1.1 that never asks"} {
		t.Run(kind, func(t *testing.T) {
			held := make([]net.Conn, many)
			defer func() {
				for _, c := range held {
					if c != nil {
						c.Close()
					}
				}
				eventually(t, "they are counted out", func() bool { return s.edge.Figures().Connections < 10 })
			}()
			before := heap()
			var work sync.WaitGroup
			turns := make(chan int)
			for range 16 {
				work.Go(func() {
					for i := range turns {
						held[i] = idleVisitor(t, s.Addrs(), s.roots(t), kind)
					}
				})
			}
			for i := range many {
				turns <- i
			}
			close(turns)
			work.Wait()
			t.Logf("%d visitors: %d bytes each, both ends", many, (heap()-before)/int64(many))
			s.unharmed(t)
		})
	}
}

// idleVisitor opens a connection, sends one request, and stays.
func idleVisitor(t *testing.T, at Addrs, roots *x509.CertPool, kind string) net.Conn {
	addr := at.HTTP
	if strings.HasPrefix(kind, "TLS") {
		addr = at.HTTPS
	}
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	conn.SetDeadline(time.Now().Add(2 * patience))
	if strings.HasPrefix(kind, "TLS") {
		proto := "http/1.1"
		if strings.HasSuffix(kind, "HTTP/2") {
			proto = "h2"
		}
		secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "shop.relay.test", NextProtos: []string{proto}})
		if err := secure.Handshake(); err != nil {
			t.Error(err)
			return conn
		}
		conn = secure
	}
	switch {
	case strings.HasSuffix(kind, "asks"):
	case strings.HasSuffix(kind, "HTTP/2"):
		io.WriteString(conn, http2.ClientPreface)
		framer := http2.NewFramer(conn, conn)
		framer.WriteSettings()
		var block bytes.Buffer
		enc := hpack.NewEncoder(&block)
		for _, f := range request("/") {
			enc.WriteField(f)
		}
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		for {
			f, err := framer.ReadFrame()
			if err != nil {
				t.Error(err)
				return conn
			}
			if f.Header().StreamID == 1 && f.Header().Flags.Has(http2.FlagDataEndStream) {
				break
			}
		}
	default:
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n")
		got := make([]byte, 0, 1024)
		for !bytes.HasSuffix(got, []byte("hello")) {
			n, err := conn.Read(got[len(got):cap(got)])
			if err != nil {
				t.Error(err)
				return conn
			}
			got = got[:len(got)+n]
		}
	}
	conn.SetDeadline(time.Time{})
	return conn
}

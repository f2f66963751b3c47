package relay

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http2/hpack"
)

// TestRequestsThatStandStillEnd uses visitors that send half a body, read nothing of an
// answer, or keep a silent WebSocket open. After stream_idle none of them occupies the
// origin any more.
func TestRequestsThatStandStillEnd(t *testing.T) {
	var came, left [8]atomic.Int32
	cfg := testConfig(t.TempDir())
	cfg.Limits.StreamIdle, cfg.Limits.OriginTime = "1500ms", "1s"
	s := startSite(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.RawQuery)
		if err != nil {
			return
		}
		came[n].Add(1)
		defer left[n].Add(1)
		switch r.URL.Path {
		case "/large":
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		case "/socket":
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer c.CloseNow()
			c.Read(context.Background())
		default:
			io.Copy(io.Discard, r.Body)
		}
	}))
	plain := func(text string) net.Conn {
		conn, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, text)
		return conn
	}
	two := func(path, method string, body string) net.Conn {
		conn := dialHTTP2(t, s)
		conn.headers(1, method == http.MethodGet, []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "shop.relay.test"}}...)
		if body != "" {
			conn.framer.WriteData(1, false, []byte(body))
		}
		return conn
	}
	visitor := s.visitor3(t)
	three := func(ctx context.Context, path string) {
		body, in := io.Pipe()
		context.AfterFunc(ctx, func() { in.Close() })
		go io.WriteString(in, "half")
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.https+path, body)
		if resp, err := visitor.Do(req); err == nil && strings.HasPrefix(path, "/large") {
			<-ctx.Done() // nothing is read
			resp.Body.Close()
		}
	}
	for n, c := range []struct {
		name string
		open func(ctx context.Context, query string) net.Conn // nil: it ends with ctx
	}{
		{"half a body by HTTP/1.1", func(_ context.Context, query string) net.Conn {
			return plain("POST /half" + query + " HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length: 100\r\n\r\nhalf")
		}},
		{"half a chunk by HTTP/1.1", func(_ context.Context, query string) net.Conn {
			return plain("POST /half" + query + " HTTP/1.1\r\nHost: shop.relay.test\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf")
		}},
		{"half a body by HTTP/2", func(_ context.Context, query string) net.Conn { return two("/half"+query, http.MethodPost, "half") }},
		{"half a body by HTTP/3", func(ctx context.Context, query string) net.Conn {
			go three(ctx, "/half"+query)
			return nil
		}},
		{"an answer that is not read by HTTP/1.1", func(_ context.Context, query string) net.Conn {
			return plain("GET /large" + query + " HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n")
		}},
		{"an answer that is not read by HTTP/2", func(_ context.Context, query string) net.Conn { return two("/large"+query, http.MethodGet, "") }},
		{"an answer that is not read by HTTP/3", func(ctx context.Context, query string) net.Conn {
			go three(ctx, "/large"+query)
			return nil
		}},
		{"a WebSocket", func(_ context.Context, query string) net.Conn {
			return plain("GET /socket" + query + " HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var asked time.Time
			eventually(t, "the origin has had the request", func() bool {
				// On a machine that stands still a request may end before the origin has it.
				if time.Since(asked) > 5*time.Second {
					asked = time.Now()
					if conn := c.open(ctx, "?"+strconv.Itoa(n)); conn != nil {
						t.Cleanup(func() { conn.Close() })
					}
				}
				return came[n].Load() > 0
			})
			eventually(t, "the origin is left alone", func() bool { return left[n].Load() == came[n].Load() })
		})
	}
	t.Cleanup(func() { // behind all of them: while some are under way, the endpoints have visitors
		eventually(t, "the endpoints have no visitor", func() bool {
			for _, ep := range s.edge.Endpoints() {
				if ep.Counters().Open != 0 {
					return false
				}
			}
			return true
		})
	})
}

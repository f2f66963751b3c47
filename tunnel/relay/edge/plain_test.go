package edge

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/wire"
)

// TestPlainHTTPAtTheTLSPortIsLedToTLS sends requests without TLS to the TLS port, with and
// without tls tunnels.
func TestPlainHTTPAtTheTLSPortIsLedToTLS(t *testing.T) {
	for name, passing := range map[string]bool{"without tls tunnels": false, "with a tls tunnel": true} {
		t.Run(name, func(t *testing.T) {
			var lns [2]net.Listener
			for i := range lns {
				var err error
				if lns[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
			}
			e := New(Config{HTTP: lns[0], HTTPS: lns[1], Certificates: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }})
			if passing {
				if _, err := e.Attach(routing.Face{Target: "domain:shop.test", Slot: "tls", Type: wire.TypeTLS, Domain: "shop.test"}, &routing.Backend{Agent: new(routing.Agent)}); err != nil {
					t.Fatal(err)
				}
			}
			ctx, end := context.WithCancel(t.Context())
			ran := make(chan error)
			go func() { ran <- e.Run(ctx, 0) }()
			defer func() {
				end()
				if err := <-ran; err != nil {
					t.Error(err)
				}
			}()
			for request, want := range map[string]string{
				"GET / HTTP/1.1\r\nHost: shop.test\r\nX-Forwarded-Proto: https\r\n\r\n":           "",
				"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n":                                       "https://shop.test/",
				"POST /%2f?q=\" HTTP/1.1\r\nHost: shop.test:8443\r\nContent-Length: 3\r\n\r\nabc": "https://shop.test:8443/%2f?q=\"",
				"GET /" + strings.Repeat("x", 5000) + " HTTP/1.0\r\nHost: shop.test\r\n\r\n":      "https://shop.test/" + strings.Repeat("x", 5000),
				"GET / HTTP/1.0\r\n\r\n":                                "",
				"GET / HTTP/1.1\r\nHost: shop.test/@other.test\r\n\r\n": "",
				"OPTIONS * HTTP/1.1\r\nHost: shop.test\r\n\r\n":         "",
				"POST / HTTP/1.1\r\nHost: shop.test\r\nCookie: " + strings.Repeat("c", 20<<10) + "\r\nContent-Length: 3\r\n\r\nabc": "",
			} {
				conn, err := net.Dial("tcp", lns[1].Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(20 * time.Second))
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				begin := "HTTP/1.1 400 Bad Request\r\nContent-Type:"
				if want != "" {
					begin = "HTTP/1.1 308 Permanent Redirect\r\nLocation: " + want + "\r\n"
				}
				if err != nil || !strings.HasPrefix(string(answer), begin) || !strings.HasSuffix(string(answer), " https://.\n") {
					t.Errorf("%.100q is answered %.200q, %v, want %.100q", request, answer, err, begin)
				}
			}
		})
	}
}

// FuzzSecureURL checks that a request without TLS is redirected to the host that it asked for,
// and nowhere else.
func FuzzSecureURL(f *testing.F) {
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n", "GET //other.test/ HTTP/1.1\r\nHost: shop.test:80\r\n\r\n",
		"GET http://other.test/x HTTP/1.1\r\nHost: shop.test\r\n\r\n", "GET /\\other.test HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
		"GET ?x HTTP/1.1\r\nHost: shop.test\r\n\r\n", "GET / HTTP/1.1\r\nHost: a:b:c\r\n\r\n", "GET / HTTP/1.1\r\nHost: [a]b]\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return
		}
		to := secureURL(r)
		if to == "" {
			return
		}
		host, rest, _ := strings.Cut(strings.TrimPrefix(to, "https://"), "/")
		if host != r.Host || strings.ContainsAny(host, "@\\?#% ") {
			t.Errorf("a request to %q is sent to %q", r.Host, to)
		}
		if strings.ContainsFunc(rest, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
			t.Errorf("it is sent to %q", to)
		}
	})
}

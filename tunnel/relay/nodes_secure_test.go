package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"adit/tunnel/wire"
)

// secureVisitors returns clients of a node's HTTPS, for each version of HTTP, that trust
// the authority of another node.
func (r *testRelay) secureVisitors(tb testing.TB, trusting *testRelay) map[string]*http.Client {
	tb.Helper()
	addr, roots := r.Addrs().HTTPS, trusting.roots(tb)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	one := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	two := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	three := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		Dial: func(ctx context.Context, _ string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, addr, t, q)
		},
	}
	tb.Cleanup(func() { one.CloseIdleConnections(); two.CloseIdleConnections(); three.Close() })
	list := map[string]*http.Client{"HTTP/1.1": {Transport: one}, "HTTP/2.0": {Transport: two}, "HTTP/3.0": {Transport: three}}
	for _, c := range list {
		c.Timeout = 2 * patience
	}
	return list
}

// TestSecureTunnelsOfAnotherNodesAgent sends https and tls visitors to the node that the
// agent is not connected to. Certificates are from an authority that the nodes share, and
// those of a tls tunnel are the origin's own.
func TestSecureTunnelsOfAnotherNodesAgent(t *testing.T) {
	c := startNodes(t, 2)
	here, there := c.all[0], c.all[1]
	a := connect(t, there.at(c.clientEverywhere("shop")), "i1")
	a.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/socket" {
			wsEcho(t).ServeHTTP(w, r)
			return
		}
		w.Header().Set("X-For", r.Header.Get("X-Forwarded-For")+" by "+r.Header.Get("X-Forwarded-Proto"))
		io.Copy(w, r.Body)
	})))
	origin := httptest.NewTLSServer(text("the origin's own"))
	defer origin.Close()
	a.mustClaim("tls", wire.Claim{Type: wire.TypeTLS, Domain: "pass"}, origin.Listener.Addr().String())
	eventually(t, "the other node serves both", func() bool { return len(here.edge.Endpoints()) == 2 })

	body := make([]byte, 2<<20)
	rand.Read(body)
	visitors := here.secureVisitors(t, there)
	for version, v := range visitors {
		// Nodes on a machine that stands still for seconds take each other for dead.
		eventually(t, "a visitor is answered by "+version, func() bool {
			resp, err := v.Post("https://shop.relay.test/x", "", bytes.NewReader(body))
			if err != nil {
				t.Logf("%s: %v", version, err)
				return false
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
				t.Logf("%s: %s, %v", version, resp.Status, err)
				return false
			}
			if resp.StatusCode != 200 || resp.Proto != version || !bytes.Equal(got, body) || resp.Header.Get("X-For") != "127.0.0.1 by https" {
				t.Errorf("%s: got %s %s with %d bytes for %q", version, resp.Proto, resp.Status, len(got), resp.Header.Get("X-For"))
			}
			return true
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	socket, _, err := websocket.Dial(ctx, "https://shop.relay.test/socket", &websocket.DialOptions{HTTPClient: visitors["HTTP/1.1"]})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if err := socket.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := socket.Read(ctx); err != nil || string(got) != "hello" {
		t.Errorf("the WebSocket says %q, %v", got, err)
	}

	conn, err := net.Dial("tcp", here.Addrs().HTTPS)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	secure := tls.Client(conn, &tls.Config{ServerName: "pass.relay.test", InsecureSkipVerify: true}) // what it shows is compared below
	io.WriteString(secure, "GET / HTTP/1.1\r\nHost: pass.relay.test\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(secure)
	if err != nil || !bytes.HasSuffix(answer, []byte("the origin's own")) {
		t.Errorf("through the tls tunnel: %q, %v", answer, err)
	}
	if shown := secure.ConnectionState().PeerCertificates; len(shown) == 0 || !shown[0].Equal(origin.Certificate()) {
		t.Error("the certificate is not the origin's")
	}
	// The agent leaves: the other node has nobody for these names.
	if err := a.call(http.MethodDelete, wire.PathClaims+"tls", nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tls tunnel is gone from the other node, too", func() bool {
		c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", here.Addrs().HTTPS, &tls.Config{ServerName: "pass.relay.test", InsecureSkipVerify: true})
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

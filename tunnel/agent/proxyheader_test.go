package agent

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/wire"
)

// TestProxyHeaderComesBeforeTLS has a local service that speaks TLS read the header
// in front of it, as nginx and haproxy do, from a visitor and from a replay. It is the
// tunnel's own, and then that of one of its paths.
func TestProxyHeaderComesBeforeTLS(t *testing.T) {
	plain := httptest.NewUnstartedServer(nil)
	plain.StartTLS() // for its certificate
	defer plain.Close()
	headers := make(chan string, 4)
	port := service(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		header, err := in.ReadString('\n')
		if err != nil {
			return
		}
		headers <- header
		secure := tls.Server(buffered{c, in}, &tls.Config{Certificates: plain.TLS.Certificates})
		req, err := http.ReadRequest(bufio.NewReader(secure))
		if err != nil {
			t.Errorf("no request came: %v", err)
			return
		}
		fmt.Fprintf(secure, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
		secure.Close()
	})
	r := newFakeRelay(t)
	r.does(wire.FeaturePaths)
	a, _ := configured(t, r, Config{})
	for path, want := range map[string]definition.Tunnel{
		"":     {LocalPort: port, LocalScheme: "https", ProxyProtocol: "v1"},
		"/api": {LocalPort: refusing(t), ProxyProtocol: "v1", Paths: []definition.Path{{Path: "/api", LocalPort: port, LocalScheme: "https"}}},
	} {
		tun := mustCreate(t, a, want)
		s, err := r.visitPath(tun.ID, wire.StreamHTTP, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Reset)
		if _, body := edge(t, s, "GET", path+"/hey", ""); body != path+"/hey" {
			t.Errorf("got %q, want %s/hey", body, path)
		}
		if got, want := <-headers, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n"; got != want {
			t.Errorf("%s: got the header %q, want %q", path, got, want)
		}
		var id string
		eventually(t, "the request is listed", func() bool {
			list := a.Requests(inspect.Filter{TunnelID: tun.ID})
			if len(list) == 1 && list[0].State == "done" {
				id = list[0].ID
			}
			return id != ""
		})
		if d, err := a.Replay(t.Context(), id, inspect.Edit{}); err != nil || d.Status != 200 {
			t.Errorf("%s: replay: got status %d, %v", path, d.Status, err)
		}
		if got := <-headers; got != "PROXY UNKNOWN\r\n" {
			t.Errorf("%s: the replay got the header %q", path, got)
		}
	}
}

// buffered is a connection of which a reader has taken some.
type buffered struct {
	net.Conn
	in io.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// TestChangeOfHowStreamsAreServedIsClaimedAnew: the relay keeps streams for the
// requests to come, and lets go of them at a new claim. One that was begun under
// the old way would show the inspector what it is not to see any more, for as long
// as requests come.
func TestChangeOfHowStreamsAreServedIsClaimedAnew(t *testing.T) {
	r := newFakeRelay(t)
	var claims atomic.Int64
	r.set(func() {
		r.onClaim = func(string, wire.Claim) *wire.Problem { claims.Add(1); return nil }
	})
	a, _ := configured(t, r, Config{})
	no, proxy, scheme := false, "v2", "https"
	declared := definition.Tunnel{Name: "declared", Type: "https", LocalPort: 81, Domain: "d"}
	if err := a.Declare(t.Context(), []definition.Tunnel{declared}); err != nil {
		t.Fatal(err)
	}
	tun := mustCreate(t, a, definition.Tunnel{Type: "https", LocalPort: 80, Domain: "shop"})
	eventually(t, "both are claimed", func() bool { return claims.Load() == 2 })
	for what, patch := range map[string]definition.Patch{
		"not inspected any more": {Inspect: &no},
		"PROXY protocol":         {ProxyProtocol: &proxy},
		"TLS":                    {LocalScheme: &scheme},
	} {
		before := claims.Load()
		for _, again := range []string{"", ", once more"} {
			if _, err := a.Change(t.Context(), tun.ID, patch); err != nil {
				t.Fatal(err)
			}
			if got := claims.Load() - before; got != 1 {
				t.Errorf("%s%s: claimed %d times, want 1", what, again, got)
			}
		}
	}
	before := claims.Load()
	declared.Inspect = &no
	if err := a.Declare(t.Context(), []definition.Tunnel{declared}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the declared one is claimed anew", func() bool { return claims.Load() == before+1 })
}

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/internal/require"
)

// TestPoliciesByRealAddresses asks a relay from addresses of both IP versions,
// by themselves and through a load balancer that tells of them in a PROXY
// header: who is let in must be who the policy names, and what explain says.
func TestPoliciesByRealAddresses(t *testing.T) {
	if !unshared(t, "128m") {
		return
	}
	const (
		relay4, relay6       = "198.51.100.1", "2001:db8::1"
		balancer4, balancer6 = "192.0.2.10", "2001:db8:ff::10"
	)
	visitors := map[string]bool{ // whether the policy lets them in
		"203.0.113.7": true, "203.0.113.66": false, "203.0.113.200": false, "198.51.100.9": false,
		"2001:db8:1::7": true, "2001:db8:1::66": false, "2001:db8:2::7": false,
	}
	ip := require.Tool(t, "ip")
	own := func(addr string) {
		if a := netip.MustParseAddr(addr); a.Is4() {
			tool(t, ip, "addr", "add", addr+"/32", "dev", "lo")
		} else {
			tool(t, ip, "addr", "add", addr+"/128", "dev", "lo", "nodad")
		}
	}
	for _, addr := range []string{relay4, relay6, balancer4, balancer6} {
		own(addr)
	}
	for addr := range visitors {
		own(addr)
	}
	port := freeport.Get(t)
	relay := newRelay(t, "--edge_http_listen", fmt.Sprintf(":%d", port), "--edge_https_listen", fmt.Sprintf(":%d", freeport.Get(t)),
		"--trusted_proxies", balancer4+"/32,"+balancer6+"/128")
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	shop := agent.publish("http", newOrigin(t), map[string]any{"domain": "shop"})
	echo := agent.publish("tcp", newEcho(t), nil)
	set := func(target, policy string) {
		t.Helper()
		if got := runInput(t, nil, policy, "relay", "policy", "set", target, "--data_dir", relay.dir); got.code != 0 {
			t.Fatalf("set the policy: %s", got.stderr)
		}
	}
	const policy = `{"deny":["203.0.113.66","2001:db8:1::66"],"allow":["203.0.113.0/25","2001:db8:1::/48"]}`
	set("shop", policy)
	tcpPort := portOf(t, strings.TrimPrefix(echo.PublicURL, "tcp://"))
	set(fmt.Sprintf("tcp.%d", tcpPort), policy)
	site, err := url.Parse(shop.PublicURL)
	if err != nil {
		t.Fatal(err)
	}

	// connect goes from an address to a port of the relay's, of the same version.
	connect := func(from string, port int) (net.Conn, error) {
		to := relay4
		if netip.MustParseAddr(from).Is6() {
			to = relay6
		}
		d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := d.Dial("tcp", net.JoinHostPort(to, fmt.Sprint(port)))
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			conn.SetDeadline(time.Now().Add(patience))
		}
		return conn, err
	}
	dial := func(from string, port int) net.Conn {
		t.Helper()
		conn, err := connect(from, port)
		if err != nil {
			t.Fatalf("from %s: %v", from, err)
		}
		return conn
	}
	header := func(visitor string) string {
		family, to := "TCP4", relay4
		if netip.MustParseAddr(visitor).Is6() {
			family, to = "TCP6", relay6
		}
		return fmt.Sprintf("PROXY %s %s %s 4711 %d\r\n", family, visitor, to, port)
	}
	// ask returns the status that a connection gets, 0 if it is ended without one.
	ask := func(conn net.Conn, before string) int {
		t.Helper()
		fmt.Fprintf(conn, "%sGET /?size=10 HTTP/1.1\r\nHost: %s\r\n\r\n", before, site.Host)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	await(t, "the policy is in force", func() error {
		if got := ask(dial("198.51.100.9", port), ""); got != http.StatusForbidden {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	for visitor, allowed := range visitors {
		want := http.StatusForbidden
		if allowed {
			want = http.StatusOK
		}
		if got := ask(dial(visitor, port), ""); got != want {
			t.Errorf("%s by itself: got %d, want %d", visitor, got, want)
		}
		for _, balancer := range []string{balancer4, balancer6} {
			if got := ask(dial(balancer, port), header(visitor)); got != want {
				t.Errorf("%s through the load balancer %s: got %d, want %d", visitor, balancer, got, want)
			}
		}
		// Who is no load balancer cannot say that it is somebody else.
		if got := ask(dial(visitor, port), header("203.0.113.7")); got == http.StatusOK {
			t.Errorf("%s, with a header of its own making: got %d", visitor, got)
		}
		answer := make([]byte, 5)
		conn, err := connect(visitor, tcpPort) // who is not let in may be reset at once
		if err == nil {
			io.WriteString(conn, "hello")
			_, err = io.ReadFull(conn, answer)
		}
		if (err == nil) != allowed || isTimeout(err) {
			t.Errorf("%s at the tcp tunnel: got %q, %v", visitor, answer, err)
		}
		var told struct{ Allowed bool }
		decode(t, must(t, nil, "relay", "policy", "explain", "shop", visitor, "--json", "--data_dir", relay.dir), &told)
		if told.Allowed != allowed {
			t.Errorf("explain says of %s: %v", visitor, told.Allowed)
		}
	}

	// A change holds for connections that are open.
	open, kept := dial("2001:db8:1::7", tcpPort), dial("203.0.113.7", port)
	io.WriteString(open, "hello")
	if _, err := io.ReadFull(open, make([]byte, 5)); err != nil {
		t.Fatalf("before the change: %v", err)
	}
	if got := ask(kept, ""); got != http.StatusOK {
		t.Fatalf("before the change: %d", got)
	}
	set("shop", `{"deny":["0.0.0.0/0","::/0"]}`)
	set(fmt.Sprintf("tcp.%d", tcpPort), `{"deny":["0.0.0.0/0","::/0"]}`)
	if n, err := open.Read(make([]byte, 1)); err == nil || n > 0 || isTimeout(err) {
		t.Errorf("after the change the open connection is left as it was: %v", err)
	}
	await(t, "the kept connection is refused", func() error {
		if got := ask(kept, ""); got == http.StatusOK {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

package relay

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	proxyproto "github.com/pires/go-proxyproto"

	"adit/tunnel/wire"
)

// headed is a connection that sends a PROXY header with its first bytes.
type headed struct {
	net.Conn
	header []byte
}

func (c *headed) Write(b []byte) (int, error) {
	if c.header != nil {
		if _, err := c.Conn.Write(c.header); err != nil {
			return 0, err
		}
		c.header = nil
	}
	return c.Conn.Write(b)
}

func proxyHeaderOf(t *testing.T, version byte, visitor string) []byte {
	t.Helper()
	b, err := proxyproto.HeaderProxyFromAddrs(version, &net.TCPAddr{IP: net.ParseIP(visitor), Port: 7}, &net.TCPAddr{IP: net.ParseIP(visitor), Port: 80}).Format()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPROXYHeadersAtEachEdge puts a load balancer in front of http, https and tcp.
func TestPROXYHeadersAtEachEdge(t *testing.T) {
	for _, c := range []struct {
		name, setting string
		trusted       bool
		header        []byte
		want          string // the visitor that is recorded; "" if it is turned away
	}{
		{"v1", "accept", true, proxyHeaderOf(t, 1, "192.0.2.7"), "192.0.2.7"},
		{"v2", "accept", true, proxyHeaderOf(t, 2, "192.0.2.8"), "192.0.2.8"},
		{"v2 and IPv6", "require", true, proxyHeaderOf(t, 2, "2001:db8::9"), "2001:db8::9"},
		{"none", "accept", true, nil, "127.0.0.1"},
		{"none where one is required", "require", true, nil, ""},
		{"off", "off", true, proxyHeaderOf(t, 1, "192.0.2.7"), ""},
		{"from a stranger", "accept", false, proxyHeaderOf(t, 1, "192.0.2.7"), ""},
		{"malformed", "accept", true, []byte("PROXY TCP4 999.1.1.1 1.1.1.1 1 1\r\n"), ""},
		{"half of one", "accept", true, proxyproto.SIGV2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.ProxyProtocol = c.setting
			if c.want == "" {
				cfg.Limits.HeaderTime = "1s" // who is served has longer, on a machine that stands still too
			}
			if c.trusted {
				cfg.TrustedProxies = []string{"127.0.0.0/8"}
			}
			s := startSite(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "for "+r.Header.Get("X-Forwarded-For"))
			}))
			tcp := s.agent.mustClaim("tcp", wire.Claim{Type: wire.TypeTCP}, s.agent.origins[1])
			for kind, addr := range map[string]string{
				"http": s.edge.HTTPAddr().String(), "https": s.edge.HTTPSAddr().String(), "tcp": fmt.Sprintf("127.0.0.1:%d", tcp.RemotePort),
			} {
				if c.setting == "off" && kind == "tcp" || !c.trusted && kind == "tcp" {
					continue // there it is the visitor's own bytes, and the origin's matter
				}
				plain, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				plain.SetDeadline(time.Now().Add(patience))
				var conn net.Conn = &headed{plain, c.header}
				if kind == "https" {
					conn = tls.Client(conn, &tls.Config{RootCAs: s.roots(t), ServerName: "shop.relay.test"})
				}
				io.WriteString(conn, "GET /"+kind+" HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n")
				status, _ := bufio.NewReader(conn).ReadString('\n')
				conn.Close()
				if served := strings.Contains(status, " 200 "); served != (c.want != "") {
					t.Errorf("%s: got %q, want the visitor %q", kind, status, c.want)
				}
				if c.want == "" {
					continue
				}
				eventually(t, kind+" is recorded as "+c.want, func() bool {
					for _, ep := range s.edge.Endpoints() {
						if ep.Type != kind {
							continue
						}
						e := searched(s.Relay, func(e *wire.Access) bool { return e.Endpoint == ep.ID() && e.Visitor == c.want }, 1)
						return len(e) == 1
					}
					return false
				})
			}
		})
	}
}

// TestPolicyKnowsVisitorsBehindALoadBalancer applies a limit to a visitor, but not to the
// load balancer.
func TestPolicyKnowsVisitorsBehindALoadBalancer(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TrustedProxies = []string{"127.0.0.0/8"}
	s := startSite(t, cfg, text("in"))
	s.setPolicy(t, "shop", `{"deny":["192.0.2.0/24"]}`)
	ask := func(visitor string) string {
		conn, err := net.Dial("tcp", s.edge.HTTPAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		conn.Write(proxyHeaderOf(t, 2, visitor))
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n")
		status, _ := bufio.NewReader(conn).ReadString('\n')
		return status
	}
	eventually(t, "the policy is held", func() bool { return strings.Contains(ask("192.0.2.1"), " 403 ") })
	if got := ask("198.51.100.1"); !strings.Contains(got, " 200 ") {
		t.Errorf("another visitor: %q", got)
	}
}

// TestPolicyKnowsVisitorsHoweverTheyAreWritten makes load balancers write the visitor's
// address in all common ways. If an address cannot be parsed, the load balancer's own
// counts.
func TestPolicyKnowsVisitorsHoweverTheyAreWritten(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TrustedProxies = []string{"127.0.0.0/8", "192.0.2.200"}
	s := startSite(t, cfg, text("in"))
	s.setPolicy(t, "shop", `{"deny":["192.0.2.0/25","2001:db8::/32"]}`)
	ask := func(forwardedFor ...string) int {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http, nil)
		req.Header["X-Forwarded-For"] = forwardedFor
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	eventually(t, "the policy is held", func() bool { return ask("192.0.2.1") == 403 })
	for _, c := range []struct {
		name   string
		values []string
		want   int
	}{
		{"with a port", []string{"192.0.2.1:50123"}, 403},
		{"IPv6", []string{"2001:db8::1"}, 403},
		{"IPv6 in brackets", []string{"[2001:db8::1]"}, 403},
		{"IPv6 with a port", []string{"[2001:db8::1]:443"}, 403},
		{"IPv6 with a zone", []string{"2001:db8::1%eth0"}, 403},
		{"IPv4 as IPv6", []string{"::ffff:192.0.2.1"}, 403},
		{"IPv4 as IPv6, in hexadecimal", []string{"::ffff:c000:201"}, 403},
		{"spaces and tabs", []string{" \t192.0.2.1\t "}, 403},
		{"behind two load balancers", []string{"192.0.2.1, 192.0.2.200"}, 403},
		{"in two fields", []string{"198.51.100.1", "192.0.2.1"}, 403},
		{"what a visitor wrote before it", []string{"198.51.100.1, 192.0.2.1"}, 403},
		{"what a visitor wrote as a load balancer's", []string{"198.51.100.1, 192.0.2.200, 192.0.2.1"}, 403},
		{"another", []string{"192.0.2.1, 198.51.100.1"}, 200},
		{"none", []string{"192.0.2.1, unknown"}, 200},
		{"octal", []string{"0300.0.2.1"}, 200},
	} {
		if got := ask(c.values...); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
	// A visitor of the load balancer's own machine, by a socket without an
	// address, is the load balancer.
	s.setPolicy(t, "shop", `{"deny":["127.0.0.0/8"]}`)
	conn, err := net.Dial("tcp", s.edge.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	header, err := proxyproto.HeaderProxyFromAddrs(2, &net.UnixAddr{Net: "unix", Name: "/a"}, &net.UnixAddr{Net: "unix", Name: "/b"}).Format()
	if err != nil {
		t.Fatal(err)
	}
	conn.Write(header)
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n")
	if status, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(status, " 403 ") {
		t.Errorf("by a socket without an address: %q", status)
	}
}

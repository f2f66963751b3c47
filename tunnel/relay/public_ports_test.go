package relay

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestPublicPortsAreThoseOfTheConfiguration uses a relay whose public ports differ from
// its own, as behind a container's port mapping.
func TestPublicPortsAreThoseOfTheConfiguration(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.PublicHTTPPort, cfg.PublicHTTPSPort, cfg.PublicTunnelPort = 80, 8443, 5433
	r := startRelay(t, cfg)
	token := r.client(t, "shop")
	if !strings.HasSuffix(token.Relay, ":5433") {
		t.Errorf("the token leads to %s, want port 5433", token.Relay)
	}
	if nodes := r.operator().NodeList(); len(nodes) != 1 || nodes[0].AgentAddress != token.Relay {
		t.Errorf("the console shows %+v, want %s", nodes, token.Relay)
	}
	token.Relay = r.Addrs().Tunnel
	a := connect(t, token, "i1")
	addr := startOrigin(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for key, c := range map[string]struct {
		claim wire.Claim
		want  string
	}{
		"http":  {wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "http://shop.relay.test"},
		"https": {wire.Claim{Type: wire.TypeHTTPS, Domain: "only"}, "https://only.relay.test:8443"},
		"tls":   {wire.Claim{Type: wire.TypeTLS, Domain: "sealed"}, "tls://sealed.relay.test:8443"},
	} {
		if got := a.mustClaim(key, c.claim, addr).PublicURL; got != c.want {
			t.Errorf("%s: got %s, want %s", key, got, c.want)
		}
	}
	for _, e := range r.operator().EndpointList() {
		if e.Type == wire.TypeHTTPS && e.PublicURL != "https://only.relay.test:8443" {
			t.Errorf("the console shows %s", e.PublicURL)
		}
	}
	// What visitors are told leads to the public port, too.
	visitor := r.visitor(t)
	visitor.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, plain, _ := net.SplitHostPort(r.Addrs().HTTP)
	resp, err := visitor.Get("http://only.relay.test:" + plain + "/a?b=c")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Location"); got != "https://only.relay.test:8443/a?b=c" {
		t.Errorf("the redirect leads to %s", got)
	}
	_, secure, _ := net.SplitHostPort(r.Addrs().HTTPS)
	if resp, err = visitor.Get("https://only.relay.test:" + secure + "/"); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Alt-Svc"); !strings.HasPrefix(got, `h3=":8443"`) {
		t.Errorf("HTTP/3 is told of at %s", got)
	}
}

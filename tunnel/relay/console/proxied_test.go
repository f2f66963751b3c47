package console

import (
	"net/http"
	"net/netip"
	"testing"
)

// proxied makes requests through a proxy that adds its peer to X-Forwarded-For.
func proxied(r *running, forwarded string) *browser {
	return &browser{r: r, header: http.Header{"X-Forwarded-For": {forwarded}}}
}

// TestStrangerBehindTheSameProxyLocksNobodyOut puts the console behind a web server on
// the same machine, as the documentation does.
func TestStrangerBehindTheSameProxyLocksNobodyOut(t *testing.T) {
	r := serve(t)
	r.owner()
	r.cfg.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	exhaust(proxied(r, "203.0.113.1"))
	proxied(r, "198.51.100.2").want(200, "POST", "/api/v1/session", rightLogin)
	(&browser{r: r}).want(200, "POST", "/api/v1/session", rightLogin)
	// What the stranger says of itself stands before what the proxy says.
	proxied(r, "198.51.100.9, 203.0.113.1").want(429, "POST", "/api/v1/session", rightLogin)
	proxied(r, "203.0.113.1:4711, 10.1.2.3").want(429, "POST", "/api/v1/session", rightLogin)
	proxied(r, "nonsense").want(200, "POST", "/api/v1/session", rightLogin)
	b := proxied(r, "2001:db8::7")
	b.want(200, "POST", "/api/v1/session", rightLogin)
	var found bool
	for _, l := range b.want(200, "GET", "/api/v1/logins", "")["items"].([]any) {
		found = found || l.(map[string]any)["address"] == "2001:db8::7"
	}
	if !found {
		t.Error("a login behind the proxy has not its browser's address")
	}
}

func TestForwardedCountsFromATrustedProxyAlone(t *testing.T) {
	r := serve(t)
	r.owner()
	exhaust(proxied(r, "203.0.113.1"))
	proxied(r, "198.51.100.2").want(429, "POST", "/api/v1/session", rightLogin)
}

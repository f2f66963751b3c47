package origin

import (
	"net/netip"
	"testing"
)

// TestProxyHeaderOfNobody is what a proxy says of a connection that it makes for itself.
func TestProxyHeaderOfNobody(t *testing.T) {
	for version, want := range map[string]string{
		"": "", "v1": "PROXY UNKNOWN\r\n", "v2": "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00",
	} {
		if got := string(ProxyHeader(version, netip.AddrPort{}, netip.AddrPort{})); got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
}

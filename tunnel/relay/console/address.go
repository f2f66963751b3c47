package console

import (
	"net"
	"net/http"
	"net/netip"

	"adit/internal/netblock"
)

// addressKey is whom wrong tries are counted for: an IPv4 address, or an IPv6
// network of 64 bits, which one customer has.
func addressKey(r *http.Request) string {
	text := addressOf(r)
	a, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return netblock.Of(a).String()
}

// addressOf is the address that a request came from.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

package console

import (
	"net"
	"net/http"
	"net/netip"

	"adit/internal/netblock"
)

// addressKey returns what failed attempts are counted for: an IPv4 address, or an IPv6
// network of 64 bits, which belongs to one customer.
func addressKey(r *http.Request) string {
	text := addressOf(r)
	a, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return netblock.Of(a).String()
}

// addressOf returns the address that a request came from.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

package console

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// visitorOf is the address of who asks: the peer's, or if that is a trusted proxy,
// of the last in X-Forwarded-For that is none. What stands before it is the
// visitor's own word.
func (c *Console) visitorOf(r *http.Request) string {
	peer := addressOf(r)
	if a, ok := hopAddr(peer); !ok || !c.trusted(a) {
		return peer
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		a, ok := hopAddr(strings.TrimSpace(hop))
		if !ok {
			break
		}
		if peer = a.String(); !c.trusted(a) {
			break
		}
	}
	return peer
}

func (c *Console) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(c.cfg.Trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// hopAddr reads an address, as a proxy may write it: with a port or brackets.
func hopAddr(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		ap, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		a = ap.Addr()
	}
	return a.Unmap().WithZone(""), true
}

package console

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// visitorOf returns the address of the requester. That is the peer's or, if the peer is a
// trusted proxy, the last one in X-Forwarded-For that is not a trusted proxy. Anything
// before it is the requester's own claim.
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

// hopAddr parses an address as a proxy may write it: with a port or brackets.
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

package localapi

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// hostPort is a parsed Host header: a lower-case name or the canonical text of an address, and a
// port, 0 if there was none.
type hostPort struct {
	name string
	port int
}

// parseHost parses a Host header in the only forms that this server accepts: name, IPv4 or [IPv6],
// with an optional decimal port. Everything that other parsers are known to read differently is
// refused rather than repaired: trailing dots, user information, zones, numbers that pass for
// addresses, IPv4 addresses inside IPv6, signs and blanks.
func parseHost(s string) (hostPort, bool) {
	if s == "" || len(s) > 259 {
		return hostPort{}, false
	}
	var name, port string
	var hasPort bool
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return hostPort{}, false
		}
		addr, err := netip.ParseAddr(s[1:end])
		if err != nil || !addr.Is6() || addr.Is4In6() || addr.Zone() != "" {
			return hostPort{}, false
		}
		rest := s[end+1:]
		if rest != "" {
			if rest[0] != ':' {
				return hostPort{}, false
			}
			port, hasPort = rest[1:], true
		}
		name = addr.String()
	} else {
		name, port, hasPort = strings.Cut(s, ":")
		name = strings.ToLower(name)
		if !plainName(name) {
			return hostPort{}, false
		}
	}
	if !hasPort {
		return hostPort{name: name}, true
	}
	n, ok := parsePort(port)
	return hostPort{name, n}, ok
}

// plainName reports whether s is a name of letters, digits, hyphens and single dots in between, or
// a canonical IPv4 address.
func plainName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	// Browsers treat a name that ends in a number as an address (WHATWG URL, 3.5): to them, 127.1,
	// 0x7f.1 and 2130706433 are all 127.0.0.1. Only the plain form is accepted.
	last := s[strings.LastIndexByte(s, '.')+1:]
	if strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "" {
		addr, err := netip.ParseAddr(s)
		return err == nil && addr.String() == s
	}
	return true
}

func parsePort(s string) (int, bool) {
	if s == "" || len(s) > 5 || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// checkHost refuses a request whose Host is not this listener's (DNS rebinding).
func (g *guard) checkHost(r *http.Request, listen netip.AddrPort) error {
	h, ok := parseHost(r.Host)
	if !ok {
		return forbiddenHost(r.Host)
	}
	if g.hosts[h] || g.hosts[hostPort{name: h.name}] {
		return nil
	}
	if h.port != 0 && h.port != int(listen.Port()) {
		return forbiddenHost(r.Host)
	}
	switch h.name {
	case "localhost", "127.0.0.1", "::1", listen.Addr().Unmap().String():
		return nil
	}
	// A listener on all addresses answers to each of them: a page cannot make a browser send a bare
	// IP address that leads elsewhere.
	if listen.Addr().IsUnspecified() {
		if local, ok := localAddr(r); ok && local.String() == h.name {
			return nil
		}
	}
	return forbiddenHost(r.Host)
}

func localAddr(r *http.Request) (netip.Addr, bool) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok {
		return netip.Addr{}, false
	}
	ap, err := netip.ParseAddrPort(local.String())
	return ap.Addr().Unmap().WithZone(""), err == nil
}

func forbiddenHost(host string) error {
	if len(host) > 80 {
		host = host[:80] + "…"
	}
	return &problem{
		status: http.StatusForbidden, code: codeForbiddenHost,
		message: "this listener does not answer to the name " + strconv.Quote(host) + "; [local_api] allowed_hosts adds names",
	}
}

// checkPeer refuses other machines and containers, unless the listener is meant for them.
func checkPeer(remote string, listen netip.AddrPort) error {
	if !listen.Addr().Unmap().IsLoopback() {
		return nil
	}
	peer, err := netip.ParseAddrPort(remote)
	if err == nil && peer.Addr().Unmap().IsLoopback() {
		return nil
	}
	return &problem{
		status: http.StatusForbidden, code: codeForbiddenHost,
		message: "this listener answers to this machine only",
	}
}

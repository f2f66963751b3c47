package sink

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// hostAllowed refuses hosts that are obviously not public. Names are checked when they
// are dialled.
func hostAllowed(field, host string, private bool) error {
	if private {
		return nil
	}
	a, err := netip.ParseAddr(host)
	if err == nil && !public(a) || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return &FieldError{field, "is not a public address; set [sinks] allow_private = true in relay.toml to reach it"}
	}
	return nil
}

// public reports whether an address belongs to the public Internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// special lists blocks that belong to no host on the Internet, or that translate to such
// addresses (RFC 6890 and its registries).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

var errPrivate = errors.New("the address is not public; set [sinks] allow_private = true in relay.toml to reach it")

// dialer returns a dialer for public addresses only, unless private is set. It checks the
// address that a name has resolved to, so that a name cannot later lead elsewhere.
func dialer(private bool) *net.Dialer {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if !private {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !public(ap.Addr().WithZone("")) {
				return errPrivate
			}
			return nil
		}
	}
	return d
}

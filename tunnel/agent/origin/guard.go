package agent

import (
	"adit/tunnel/agent/refusal"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// metadata are the addresses at which clouds hand credentials to whoever asks
// from inside; no tunnel leads there.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("169.254.169.254/32"),    // most clouds
	netip.MustParsePrefix("169.254.170.2/32"),      // container credentials
	netip.MustParsePrefix("169.254.170.23/32"),     // pod identities
	netip.MustParsePrefix("100.100.100.200/32"),    // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),      // Azure's wire server
	netip.MustParsePrefix("192.0.0.192/32"),        // Oracle Cloud, older
	netip.MustParsePrefix("fd00:ec2::254/128"),     // Amazon
	netip.MustParsePrefix("fd00:ec2::23/128"),      // pod identities
	netip.MustParsePrefix("fd20:ce::254/128"),      // Google
	netip.MustParsePrefix("fe80::a9fe:a9fe/128"),   // OpenStack
	netip.MustParsePrefix("fd00:42::42/128"),       // Scaleway
	netip.MustParsePrefix("2002:a9fe:a9fe::/48"),   // 6to4 of 169.254.169.254
	netip.MustParsePrefix("::169.254.169.254/128"), // IPv4-compatible form
}

// plain undoes the spellings of an IPv4 address as an IPv6 one.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// checkOrigin says why a tunnel must not lead to ip and port, nil if it may.
func (a *Agent) checkOrigin(ip netip.Addr, port int) error {
	ip = plain(ip)
	for _, p := range metadata {
		if p.Contains(ip) {
			return fmt.Errorf("%s is an address at which clouds give out credentials; adit does not publish it", ip)
		}
	}
	if ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return fmt.Errorf("%s is not the address of one service", ip)
	}
	if a.cfg.Refuse != nil {
		return a.cfg.Refuse(local(ip), port)
	}
	return nil
}

// resolveOrigin returns the addresses of a local service that a tunnel may lead
// to. A name is resolved at each dial, so that one that changes is followed, and
// cannot come to mean a refused address unseen.
func (a *Agent) resolveOrigin(ctx context.Context, host string, port int) ([]netip.AddrPort, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := a.checkOrigin(ip, port); err != nil {
			return nil, err
		}
		return []netip.AddrPort{netip.AddrPortFrom(local(ip), uint16(port))}, nil
	}
	ips, err := a.lookup(ctx, "ip", host)
	if host == "localhost" {
		// It is both (RFC 6761, section 6.3), also where the system names one only:
		// many a development server listens on one that its own library prefers.
		for _, ip := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
			if !slices.Contains(ips, ip) && !slices.Contains(ips, netip.AddrFrom16(ip.As16())) {
				ips = append(slices.Clip(ips), ip)
			}
		}
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("the name %s does not resolve: %w", host, err)
	}
	var out []netip.AddrPort
	for _, ip := range ips {
		if err := a.checkOrigin(ip, port); err != nil {
			return nil, err
		}
		out = append(out, netip.AddrPortFrom(local(ip.Unmap()), uint16(port)))
	}
	// IPv4 first: that is where most local services listen.
	for i, ap := range out {
		if ap.Addr().Is4() {
			copy(out[1:i+1], out[:i])
			out[0] = ap
			break
		}
	}
	return out, nil
}

// checkHost refuses a name that means, today, an address which no tunnel may lead
// to. One that does not resolve now may do so later: each dial looks again.
func (a *Agent) checkHost(ctx context.Context, host string, port int) *refusal.Error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil // normalize has looked
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	ips, _ := a.lookup(ctx, "ip", host)
	for _, ip := range ips {
		if err := a.checkOrigin(ip, port); err != nil {
			return refusal.Invalid("local_ip", "%s is %s: %v", host, ip.Unmap(), err)
		}
	}
	return nil
}

// lookupWait is how long a request waits for the name of a local service.
const lookupWait = 2 * time.Second

// local turns the unspecified address into loopback, which is what people mean
// by it and what most systems connect to.
func local(ip netip.Addr) netip.Addr {
	switch {
	case ip == netip.IPv4Unspecified():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip == netip.IPv6Unspecified():
		return netip.IPv6Loopback()
	}
	return ip.Unmap()
}

// metadataName reports whether name is one under which clouds answer the same.
func metadataName(name string) bool {
	switch strings.TrimSuffix(strings.ToLower(name), ".") {
	case "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal":
		return true
	}
	return false
}

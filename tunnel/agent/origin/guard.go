package origin

import (
	"fmt"
	"net/netip"
	"strings"
)

// metadata are the addresses at which clouds give credentials to anybody who asks from inside; no
// tunnel leads there.
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

// plain converts the spellings of an IPv4 address as an IPv6 address back.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Guard says where no tunnel may lead. The zero Guard only knows the metadata addresses of clouds.
type Guard struct {
	// Refuse returns why a tunnel must not lead to ip and port, or nil if it may. Refuse itself may
	// be nil.
	Refuse func(ip netip.Addr, port int) error
}

// Check returns why a tunnel must not lead to ip and port, or nil if it may.
func (g Guard) Check(ip netip.Addr, port int) error {
	ip = plain(ip)
	for _, p := range metadata {
		if p.Contains(ip) {
			return fmt.Errorf("%s is an address at which clouds give out credentials; adit does not publish it", ip)
		}
	}
	if ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return fmt.Errorf("%s is not the address of one service", ip)
	}
	if g.Refuse != nil {
		return g.Refuse(local(ip), port)
	}
	return nil
}

// MetadataName reports whether clouds hand out credentials under name, whatever it resolves to
// here: no tunnel leads there.
func MetadataName(name string) bool {
	switch strings.TrimSuffix(strings.ToLower(name), ".") {
	case "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal":
		return true
	}
	return false
}

// local turns the unspecified address into loopback, which is what people mean by it and what most
// systems connect to.
func local(ip netip.Addr) netip.Addr {
	switch {
	case ip == netip.IPv4Unspecified():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip == netip.IPv6Unspecified():
		return netip.IPv6Loopback()
	}
	return ip.Unmap()
}

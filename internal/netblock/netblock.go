// Package netblock says which peer an address belongs to, for limits and counts per peer: an IPv4
// address is one peer, and so is an IPv6 /64 network, the least that a customer gets. It also
// parses the address blocks that people write.
package netblock

import (
	"net"
	"net/netip"
)

// Of returns the block to which a belongs. An IPv4-mapped IPv6 address counts as the IPv4 address;
// zones are ignored. The zero Addr has the zero Prefix.
func Of(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

// OfPeer returns the block of a connection's remote end. All peers whose address has no IP and port
// share the zero Prefix.
func OfPeer(addr net.Addr) netip.Prefix {
	if addr == nil {
		return netip.Prefix{}
	}
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{}
	}
	return Of(ap.Addr())
}

// Parse parses an address or CIDR as a block; an address is a block of one.
func Parse(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

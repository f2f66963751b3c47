// Package netblock says which peer an address belongs to, for limits and counts per peer: an IPv4
// address is one peer, and so is an IPv6 /64 network, the least that a customer gets. It also
// parses the address blocks that people write.
package netblock

import (
	"net"
	"net/netip"
)

// Of is the block that a belongs to. An IPv4 address in IPv6's form is the same
// as without; a zone tells nobody apart. The zero Addr has the zero Prefix.
func Of(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p
}

// OfPeer is the block of a connection's other end. All whose address has no IP
// and port share the zero Prefix.
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

// Parse reads an address or CIDR as a block; an address is one of its own.
func Parse(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// Package loopback recognises addresses on this machine to which only its own programs can connect.
package loopback

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
)

// Parse parses a port on 127.0.0.1, or a loopback address with a port. The port must not be zero.
func Parse(text string) (netip.AddrPort, error) {
	if port, err := strconv.ParseUint(text, 10, 16); err == nil && port > 0 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), nil
	}
	if host, port, err := net.SplitHostPort(text); err == nil && host == "localhost" {
		text = net.JoinHostPort("127.0.0.1", port)
	}
	addr, err := netip.ParseAddrPort(text)
	if err != nil || addr.Port() == 0 {
		return netip.AddrPort{}, errors.New("must be a port, or an address of this machine with a port, such as 127.0.0.1:2222")
	}
	if !addr.Addr().Unmap().IsLoopback() {
		return netip.AddrPort{}, errors.New("must be a loopback address, which other machines cannot reach, such as 127.0.0.1:2222")
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), nil
}

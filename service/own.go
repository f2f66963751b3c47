package service

import (
	"errors"
	"net"
	"net/netip"
)

// own holds the addresses on which this process listens: tunnels must not lead there.
type own struct {
	api   netip.AddrPort
	relay []netip.AddrPort
}

func (o own) refuse(ip netip.Addr, port int) error {
	if reaches(ip, port, o.api) {
		return errors.New("adit's own page and API listen there; publishing them would hand this machine's tunnels to strangers")
	}
	for _, at := range o.relay {
		if reaches(ip, port, at) {
			return errors.New("the relay of this adit listens there; a tunnel leads to a service of your own")
		}
	}
	return nil
}

// reaches reports whether dialling ip and port reaches a listener at addr. All of loopback counts
// as one.
func reaches(ip netip.Addr, port int, addr netip.AddrPort) bool {
	at := addr.Addr()
	return port == int(addr.Port()) && (ip == at || ip.IsLoopback() || at.IsUnspecified() && onThisMachine(ip))
}

func addrPort(addr net.Addr) netip.AddrPort {
	ap := addr.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

func onThisMachine(ip netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true // better refused than published
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if have, ok := netip.AddrFromSlice(n.IP); ok && have.Unmap() == ip {
				return true
			}
		}
	}
	return false
}

package agent

import (
	"net"
	"net/netip"

	proxyproto "github.com/pires/go-proxyproto"
)

// proxyHeader returns the PROXY protocol header (haproxy's proxy-protocol.txt)
// that tells an origin who its visitor is; nil for no version.
func proxyHeader(version string, visitor, edge netip.AddrPort) []byte {
	var v byte
	switch version {
	case "v1":
		v = 1
	case "v2":
		v = 2
	default:
		return nil
	}
	if !visitor.IsValid() || !edge.IsValid() {
		visitor = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		edge = visitor
	}
	h := proxyproto.HeaderProxyFromAddrs(v, net.TCPAddrFromAddrPort(visitor), net.TCPAddrFromAddrPort(edge))
	b, err := h.Format()
	if err != nil {
		return nil
	}
	return b
}

package origin

import (
	"net"
	"net/netip"

	proxyproto "github.com/pires/go-proxyproto"
)

// ProxyHeader returns the PROXY protocol header (haproxy's proxy-protocol.txt) that tells an origin
// who its visitor is. Without addresses, the header says that this machine itself makes the
// request, as it does for a replay. Without a version, the result is nil.
func ProxyHeader(version string, visitor, edge netip.AddrPort) []byte {
	var v byte
	switch version {
	case "v1":
		v = 1
	case "v2":
		v = 2
	default:
		return nil
	}
	h := &proxyproto.Header{Version: v, Command: proxyproto.LOCAL}
	if visitor.IsValid() && edge.IsValid() {
		h = proxyproto.HeaderProxyFromAddrs(v, net.TCPAddrFromAddrPort(visitor), net.TCPAddrFromAddrPort(edge))
	}
	b, err := h.Format()
	if err != nil {
		return nil
	}
	return b
}

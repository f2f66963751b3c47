package visitor

import (
	"net"
	"net/netip"

	proxyproto "github.com/pires/go-proxyproto"

	"adit/internal/sockio"
	"adit/tunnel/link"
)

// ProxyHeader says whether a load balancer begins its connections with a header of the PROXY
// protocol (haproxy's proxy-protocol.txt).
type ProxyHeader int

// ProxyAccepted is the zero value: connections may begin with a header or not. In a protocol
// in which the server speaks first, a missing header cannot be told from a late one, so a tcp
// tunnel behind a load balancer that sends no headers should use ProxyOff.
const (
	ProxyAccepted ProxyHeader = iota
	ProxyRequired             // connections without a header are closed
	ProxyOff                  // anything that looks like a header is the visitor's own data
)

// Admit reads a load balancer's PROXY header and counts the connection for the visitor's
// address. It returns nil if there are too many connections, of that address or in total, or
// if the header is invalid.
func (v *Admission) Admit(conn net.Conn) *Conn {
	remote, local := AddrPort(conn.RemoteAddr()), AddrPort(conn.LocalAddr())
	c := &Conn{Conn: sockio.Wrap(conn), Addr: remote, Edge: local}
	c.cut = func() { conn.Close() }
	v.Rest(&c.Resting, c.cut)
	if v.cfg.Proxy != ProxyOff && v.Trusted(remote.Addr()) {
		pc := proxyproto.NewConn(conn,
			proxyproto.WithPolicy(proxyproto.USE), proxyproto.SetReadHeaderTimeout(v.cfg.HeaderTime))
		h := pc.ProxyHeader()
		if h != nil && !h.Command.IsLocal() {
			// A visitor that reached the load balancer over a socket without an address
			// (AF_UNIX) is counted as the load balancer.
			if addr := AddrPort(pc.RemoteAddr()); addr.IsValid() {
				c.Addr, c.Edge = addr, AddrPort(pc.LocalAddr())
			}
		}
		if h == nil && v.cfg.Proxy == ProxyRequired {
			v.turnAway(remote.Addr(), "a load balancer's connection has no PROXY header")
			v.Work(&c.Resting)
			return nil
		}
		c.Conn = pc
	}
	if err := v.enter(c.Addr.Addr(), v.Trusted(c.Addr.Addr()), &c.Resting); err != nil {
		v.turnAway(c.Addr.Addr(), err.Error())
		v.Work(&c.Resting)
		return nil
	}
	c.leave = func() {
		v.Forget(&c.Resting)
		v.leave(c.Addr.Addr())
	}
	return c
}

// AdmitGuest admits a guest who comes by a stream of its session, of which early has already
// been read. If there are too many connections, it ends the stream and returns nil.
func (v *Admission) AdmitGuest(s link.Stream, early []byte, g Guest) *Conn {
	c := &Conn{Conn: s, Addr: g.Addr, Edge: g.Relay, replay: early, Guest: &g}
	c.cut = s.Reset
	v.Rest(&c.Resting, c.cut)
	if err := v.enter(g.Addr.Addr(), false, &c.Resting); err != nil {
		v.turnAway(g.Addr.Addr(), err.Error())
		v.Work(&c.Resting)
		s.Reset()
		s.Close()
		return nil
	}
	c.leave = func() {
		v.Forget(&c.Resting)
		v.leave(g.Addr.Addr())
	}
	return c
}

// AddrPort returns a connection's address in the form of Clean, or the zero value if it is not
// an IP address.
func AddrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.TCPAddr:
		return Clean(a.AddrPort())
	case *net.UDPAddr:
		return Clean(a.AddrPort())
	}
	if ap, err := netip.ParseAddrPort(a.String()); err == nil {
		return Clean(ap)
	}
	return netip.AddrPort{}
}

// Clean returns an address in the form that policies use: without a zone, and IPv4 not mapped
// into IPv6.
func Clean(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

package visitor

import (
	"net"
	"net/netip"

	proxyproto "github.com/pires/go-proxyproto"

	"adit/internal/sockio"
	"adit/tunnel/link"
)

// ProxyHeader says whether a load balancer's connections begin with a header of
// the PROXY protocol (haproxy's proxy-protocol.txt).
type ProxyHeader int

// Accepted is the zero value: with one, or without. A protocol in which the
// server speaks first cannot be told from a header that is late, so a tcp tunnel
// behind a load balancer without headers is better off with ProxyOff.
const (
	ProxyAccepted ProxyHeader = iota
	ProxyRequired             // a connection without one is closed
	ProxyOff                  // what looks like one is the visitor's
)

// Admit reads a load balancer's PROXY header and counts the connection to the
// visitor's address. It returns nil if that address or all have too many, or the
// header is bad.
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
			// A visitor who came to the load balancer by a socket without an address
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

// AdmitGuest lets in a guest who comes by a stream of its session, of which early has
// come already. It returns nil, and has ended the stream, if that is one too many.
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

// AddrPort is a connection's address as Clean has it; none if it has none of IP.
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

// Clean is an address as policies know it: IPv4 in itself, and without a zone.
func Clean(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

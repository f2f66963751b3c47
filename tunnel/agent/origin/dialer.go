package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"adit/internal/lookup"
	"adit/internal/socketerr"
	"adit/internal/sockio"
	"adit/tunnel/agent/splice"
)

// Dialer connects to local services. Use it by pointer, and set its fields before calling its
// methods.
type Dialer struct {
	Guard Guard
	// Timeout is how long a service may take to accept a connection.
	Timeout time.Duration
	// LookAgain is how long a datagram service that receives packets but does not answer is still
	// assumed to be at the address to which its name resolved.
	LookAgain time.Duration
	// Lookup resolves the names of services. If nil, the system's resolver is used, and the
	// addresses of one family suffice.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	peers sync.Map // *sockio.Peer by host:port; as many as there were services
}

func (d *Dialer) peer(s Service) *sockio.Peer {
	p, _ := d.peers.LoadOrStore(s.String(), new(sockio.Peer))
	return p.(*sockio.Peer)
}

// names looks up the names of services. Earlier addresses are never tried: a service need not prove
// its identity.
var names = lookup.Resolver{Forgetful: true}

func (d *Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if d.Lookup == nil && host == "localhost" { // no server is asked for it
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	if d.Lookup == nil {
		return names.LookupNetIP(ctx, "ip", host)
	}
	return d.Lookup(ctx, "ip", host)
}

// resolve returns the addresses of a local service to which a tunnel may lead. A name is resolved
// at each dial, so that changes are followed and the name cannot come to mean a refused address
// unnoticed.
func (d *Dialer) resolve(ctx context.Context, s Service) ([]netip.AddrPort, error) {
	if ip, err := netip.ParseAddr(s.Host); err == nil {
		if err := d.Guard.Check(ip, s.Port); err != nil {
			return nil, err
		}
		return []netip.AddrPort{netip.AddrPortFrom(local(ip), uint16(s.Port))}, nil
	}
	ips, err := d.lookup(ctx, s.Host)
	if s.Host == "localhost" {
		// localhost is both addresses (RFC 6761, section 6.3), even if the system returns only one:
		// many development servers listen only on the one that their own library prefers.
		for _, ip := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
			if !slices.Contains(ips, ip) && !slices.Contains(ips, netip.AddrFrom16(ip.As16())) {
				ips = append(slices.Clip(ips), ip)
			}
		}
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("the name %s does not resolve: %w", s.Host, err)
	}
	var out []netip.AddrPort
	for _, ip := range ips {
		if err := d.Guard.Check(ip, s.Port); err != nil {
			return nil, err
		}
		out = append(out, netip.AddrPortFrom(local(ip.Unmap()), uint16(s.Port)))
	}
	// IPv4 first, because that is where most local services listen.
	for i, ap := range out {
		if ap.Addr().Is4() {
			copy(out[1:i+1], out[:i])
			out[0] = ap
			break
		}
	}
	return out, nil
}

// lookupWait is how long Refused waits for the name of a local service.
const lookupWait = 2 * time.Second

// Refused returns an address to which the name of a service currently resolves and to which no
// tunnel may lead, with the reason; a nil error means that there is none. A name that does not
// resolve now may do so later: each dial checks again.
func (d *Dialer) Refused(ctx context.Context, s Service) (netip.Addr, error) {
	if !s.Named() {
		return netip.Addr{}, nil // who declared it was told already
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	ips, _ := d.lookup(ctx, s.Host)
	for _, ip := range ips {
		if err := d.Guard.Check(ip, s.Port); err != nil {
			return ip.Unmap(), err
		}
	}
	return netip.Addr{}, nil
}

// onlyIPv6 reports whether something listens on ::1 at the port of a service that was expected at
// 127.0.0.1: many development servers do, if localhost means ::1 first.
func (d *Dialer) onlyIPv6(ctx context.Context, s Service) bool {
	if s.Host != "127.0.0.1" || d.Guard.Check(netip.IPv6Loopback(), s.Port) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, loopbackWait)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(netip.IPv6Loopback(), uint16(s.Port)).String())
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// loopbackWait is how long onlyIPv6 waits. Services on loopback answer at once.
const loopbackWait = 250 * time.Millisecond

// Dial connects to a service. If there is a header, it is sent before everything else; services
// read it before TLS begins. With http2, HTTP/2 is requested in TLS. Its errors are written for
// people.
func (d *Dialer) Dial(ctx context.Context, s Service, header []byte, http2 bool) (splice.HalfCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	addrs, err := d.resolve(ctx, s)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	var conn net.Conn
	var addr netip.AddrPort
	for i, next := range addrs {
		share, done := ctx, context.CancelFunc(func() {})
		if more := len(addrs) - i; more > 1 { // the last address gets all the time that is left
			share, done = context.WithTimeout(ctx, d.Timeout/time.Duration(len(addrs)))
		}
		addr = next
		var failed error
		conn, failed = dialer.DialContext(share, "tcp", addr.String())
		done()
		if failed == nil {
			err = nil
			break
		}
		if i == 0 || errors.Is(failed, socketerr.Refused) { // it says most: one family may not be there at all
			err = failed
		}
	}
	if err != nil {
		if errors.Is(err, socketerr.Refused) && d.onlyIPv6(ctx, s) {
			return nil, fmt.Errorf("nothing listens at the local address %s, but something does at [::1]:%d; use localhost instead of 127.0.0.1", s, s.Port)
		}
		return nil, s.Unreached(err)
	}
	if len(header) > 0 {
		if _, err := conn.Write(header); err != nil {
			_ = conn.Close()
			return nil, s.Unreached(err)
		}
	}
	tcp := sockio.New(conn.(*net.TCPConn))
	tcp.LearnOf(d.peer(s))
	if !s.TLS {
		return tcp, nil
	}
	protocol := "http/1.1"
	if http2 {
		protocol = "h2"
	}
	secure := tls.Client(tcp, s.config(addr.Addr(), protocol))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, s.insecure(err, d.Timeout)
	}
	return secure, nil
}

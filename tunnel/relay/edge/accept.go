package edge

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	proxyproto "github.com/pires/go-proxyproto"

	"adit/internal/lend"
	"adit/internal/sockio"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/clientcert"
	"adit/tunnel/relay/edge/clienthello"
)

// feed is a listener of connections that were looked at first: from a load
// balancer or not, too many from one address or not, for a tls endpoint or not.
type feed struct {
	net.Listener
	secure bool
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newFeed(ln net.Listener, secure bool) *feed {
	return &feed{Listener: ln, secure: secure, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the next connection for HTTP.
func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Listener.Close()
}

// accept takes connections of a public listener and sorts them, until it is closed.
func (e *Edge) accept(ctx context.Context, f *feed) error {
	var sorting sync.WaitGroup
	defer sorting.Wait()
	return acceptEach(ctx, f.Listener, f.closed, func(conn net.Conn) {
		sorting.Go(func() { e.sort(f, conn) })
	})
}

// acceptEach calls f with each connection until the listener is closed. It
// rides out a moment without file descriptors.
func acceptEach(ctx context.Context, ln net.Listener, closed <-chan struct{}, f func(net.Conn)) error {
	for {
		conn, err := ln.Accept()
		if err == nil {
			f(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if !rideOut(ctx, closed) {
			return nil
		}
	}
}

// rideOut waits a moment after a listener's call that failed, so that one that
// goes on failing is no loop that takes a processor. It reports whether the
// listener is still to be served.
func rideOut(ctx context.Context, closed <-chan struct{}) bool {
	pause := time.NewTimer(50 * time.Millisecond)
	defer pause.Stop()
	select {
	case <-closed:
		return false
	case <-ctx.Done():
		return false
	case <-pause.C:
		return true
	}
}

func (e *Edge) sort(f *feed, conn net.Conn) {
	v := e.admit(conn)
	if v == nil {
		conn.Close()
		return
	}
	if f.secure && (e.table.passing.Load() > 0 || e.cfg.Agents != nil) {
		hello, err := clienthello.Peek(v, e.limits.HeaderTime)
		if clienthello.IsPlainHTTP(err) {
			v.refusePlain()
			return
		}
		if err != nil {
			v.Close()
			return
		}
		v.replay = hello.Bytes
		if e.cfg.Agents != nil && slices.ContainsFunc(hello.Protos, func(p string) bool { return slices.Contains(e.cfg.AgentProtos, p) }) {
			v.once.Do(v.leave) // an agent: not counted among visitors, and ended by the relay instead of the edge
			e.cfg.Agents(agentConn{v})
			return
		}
		if ep := e.passThrough(hello.Name); ep != nil {
			e.serveRaw(v, ep, hello.Name)
			return
		}
	}
	next := e.forHTTP(v, f.secure)
	if next == nil {
		v.refusePlain()
		return
	}
	select {
	case f.conns <- next:
	case <-f.closed:
		v.Close()
	}
}

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

// admit reads a load balancer's PROXY header and counts the connection to the
// visitor's address. It returns nil if that address or all have too many, or the
// header is bad.
func (e *Edge) admit(conn net.Conn) *visitor {
	remote, local := addrPort(conn.RemoteAddr()), addrPort(conn.LocalAddr())
	v := &visitor{Conn: sockio.Wrap(conn), addr: remote, edge: local}
	v.cut = func() { conn.Close() }
	e.visits.rest(v, v.cut)
	if e.cfg.Proxy != ProxyOff && e.trusted(remote.Addr()) {
		pc := proxyproto.NewConn(conn,
			proxyproto.WithPolicy(proxyproto.USE), proxyproto.SetReadHeaderTimeout(e.limits.HeaderTime))
		h := pc.ProxyHeader()
		if h != nil && !h.Command.IsLocal() {
			// A visitor who came to the load balancer by a socket without an address
			// (AF_UNIX) is counted as the load balancer.
			if addr := addrPort(pc.RemoteAddr()); addr.IsValid() {
				v.addr, v.edge = addr, addrPort(pc.LocalAddr())
			}
		}
		if h == nil && e.cfg.Proxy == ProxyRequired {
			e.turnAway(remote.Addr(), "a load balancer's connection has no PROXY header")
			e.visits.work(v)
			return nil
		}
		v.Conn = pc
	}
	if err := e.visits.enter(v.addr.Addr(), e.trusted(v.addr.Addr()), v); err != nil {
		e.turnAway(v.addr.Addr(), err.Error())
		e.visits.work(v)
		return nil
	}
	v.leave = func() {
		e.visits.forget(v)
		e.visits.leave(v.addr.Addr())
	}
	return v
}

func (e *Edge) trusted(a netip.Addr) bool {
	for _, p := range e.cfg.Trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.TCPAddr:
		return clean(a.AddrPort())
	case *net.UDPAddr:
		return clean(a.AddrPort())
	}
	if ap, err := netip.ParseAddrPort(a.String()); err == nil {
		return clean(ap)
	}
	return netip.AddrPort{}
}

func clean(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// visitor is a visitor's connection: its own address where a load balancer
// stands between, and bytes that were read ahead.
type visitor struct {
	net.Conn
	addr, edge netip.AddrPort
	replay     []byte
	cut        func() // closes the connection underneath; may be called at any time

	credentials clientcert.Credentials // of TLS, if it is ended here
	private     *Guest                 // who it is, of a private tunnel
	streams     streaming
	leave       func()
	once        sync.Once

	resting resting // visitors.mu guards it and gone
	gone    bool
}

func (v *visitor) Read(b []byte) (int, error) {
	if len(v.replay) > 0 {
		n := copy(b, v.replay)
		v.replay = v.replay[n:]
		return n, nil
	}
	return v.Conn.Read(b)
}

// ReadLent implements lend.Reader.
func (v *visitor) ReadLent(l *lend.Buffer) (int, error) {
	if lent, ok := v.Conn.(lend.Reader); ok && len(v.replay) == 0 {
		return lent.ReadLent(l)
	}
	return v.Read(l.Lend())
}

func (v *visitor) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(v.addr) }
func (v *visitor) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(v.edge) }

func (v *visitor) Close() error {
	err := v.Conn.Close()
	v.once.Do(v.leave)
	return err
}

// agentConn is a connection of an agent, whose socket can be tuned.
type agentConn struct{ *visitor }

func (c agentConn) SyscallConn() (syscall.RawConn, error) {
	if tcp := c.tcp(); tcp != nil {
		return tcp.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// tcp is the TCP connection underneath, or nil.
func (v *visitor) tcp() *net.TCPConn {
	switch c := v.Conn.(type) {
	case *sockio.Conn:
		return c.TCPConn
	case *net.TCPConn:
		return c
	case *proxyproto.Conn:
		tcp, _ := c.TCPConn()
		return tcp
	}
	return nil
}

func (v *visitor) CloseWrite() error {
	if c := v.tcp(); c != nil {
		return c.CloseWrite()
	}
	if s, ok := v.Conn.(link.Stream); ok {
		return s.CloseWrite()
	}
	return v.Close()
}

// TryWrite writes what goes without waiting.
func (v *visitor) TryWrite(b []byte) int {
	if c, ok := v.Conn.(*sockio.Conn); ok {
		return c.TryWrite(b)
	}
	return 0
}

// abort closes the connection so that the visitor sees it broken, not ended.
func (v *visitor) abort() {
	if c := v.tcp(); c != nil {
		c.SetLinger(0)
	}
	if s, ok := v.Conn.(link.Stream); ok {
		s.Reset()
	}
	v.Close()
}

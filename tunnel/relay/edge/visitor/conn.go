package visitor

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	proxyproto "github.com/pires/go-proxyproto"

	"adit/internal/lend"
	"adit/internal/sockio"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/clientcert"
)

// Guest is a visitor of a private tunnel: an agent that comes by its own session.
type Guest struct {
	Client, ClientID string
	Addr             netip.AddrPort // its own address
	Relay            netip.AddrPort // the address that it connected to
}

// Conn is a visitor's connection. It knows the visitor's own address, even behind a load
// balancer, and replays bytes that were read ahead.
type Conn struct {
	net.Conn
	Addr, Edge netip.AddrPort // the visitor's address, and the one that it connected to
	replay     []byte
	expecting  bool // TLS is expected: anything else is kept in plain
	plain      []byte
	cut        func() // closes the underlying connection; may be called at any time

	Credentials clientcert.Credentials // from TLS, if it ends here
	Guest       *Guest                 // who the visitor of a private tunnel is
	streams     streaming
	leave       func()
	once        sync.Once

	Resting Resting // guarded by Admission.mu
}

func (v *Conn) Read(b []byte) (int, error) {
	if len(v.replay) > 0 {
		n := copy(b, v.replay)
		v.replay = v.replay[n:]
		return n, nil
	}
	n, err := v.Conn.Read(b)
	if v.expecting {
		v.keep(b[:n])
	}
	return n, err
}

// ReadLent implements lend.Reader.
func (v *Conn) ReadLent(l *lend.Buffer) (int, error) {
	if lent, ok := v.Conn.(lend.Reader); ok && len(v.replay) == 0 {
		return lent.ReadLent(l)
	}
	return v.Read(l.Lend())
}

func (v *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(v.Addr) }
func (v *Conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(v.Edge) }

func (v *Conn) Close() error {
	err := v.Conn.Close()
	v.once.Do(v.leave)
	return err
}

// Unread makes the next reads return b.
func (v *Conn) Unread(b []byte) { v.replay = b }

// AsAgent returns the connection as one of an agent: it no longer counts as a visitor's, and
// its socket can be tuned.
func (v *Conn) AsAgent() net.Conn {
	v.once.Do(v.leave)
	return agentConn{v}
}

// agentConn is a connection of an agent, whose socket can be tuned.
type agentConn struct{ *Conn }

func (c agentConn) SyscallConn() (syscall.RawConn, error) {
	if tcp := c.tcp(); tcp != nil {
		return tcp.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// tcp returns the underlying TCP connection, or nil.
func (v *Conn) tcp() *net.TCPConn {
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

func (v *Conn) CloseWrite() error {
	if c := v.tcp(); c != nil {
		return c.CloseWrite()
	}
	if s, ok := v.Conn.(link.Stream); ok {
		return s.CloseWrite()
	}
	return v.Close()
}

// TryWrite writes as much as it can without blocking.
func (v *Conn) TryWrite(b []byte) int {
	if c, ok := v.Conn.(*sockio.Conn); ok {
		return c.TryWrite(b)
	}
	return 0
}

// Abort closes the connection in such a way that the visitor sees an error rather than a
// regular end.
func (v *Conn) Abort() {
	if c := v.tcp(); c != nil {
		c.SetLinger(0)
	}
	if s, ok := v.Conn.(link.Stream); ok {
		s.Reset()
	}
	v.Close()
}

// AbortIf closes the connection, as Abort does if err is not nil.
func (v *Conn) AbortIf(err error) {
	if err != nil {
		v.Abort()
		return
	}
	v.Close()
}

// Source returns the reader of the visitor's bytes.
func (v *Conn) Source() io.Reader {
	if s, ok := v.Conn.(link.Stream); ok && len(v.replay) == 0 {
		return s // saves its reader a wake-up
	}
	return v
}

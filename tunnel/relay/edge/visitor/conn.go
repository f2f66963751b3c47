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

// Guest is a visitor of a private tunnel: an agent, which comes by its session.
type Guest struct {
	Client, ClientID string
	Addr             netip.AddrPort // where it is
	Relay            netip.AddrPort // where it came to
}

// Conn is a visitor's connection: its own address where a load balancer
// stands between, and bytes that were read ahead.
type Conn struct {
	net.Conn
	Addr, Edge netip.AddrPort // where it is, and where it came to
	replay     []byte
	expecting  bool // TLS: what is none is kept in plain
	plain      []byte
	cut        func() // closes the connection underneath; may be called at any time

	Credentials clientcert.Credentials // of TLS, if it is ended here
	Guest       *Guest                 // who it is, of a private tunnel
	streams     streaming
	leave       func()
	once        sync.Once

	Resting Resting // Admission.mu guards it
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

// Unread has what was read ahead be read again.
func (v *Conn) Unread(b []byte) { v.replay = b }

// AsAgent returns the connection as that of an agent: it is counted among visitors no
// more, and its socket can be tuned.
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

// tcp is the TCP connection underneath, or nil.
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

// TryWrite writes what goes without waiting.
func (v *Conn) TryWrite(b []byte) int {
	if c, ok := v.Conn.(*sockio.Conn); ok {
		return c.TryWrite(b)
	}
	return 0
}

// Abort closes the connection so that the visitor sees it broken, not ended.
func (v *Conn) Abort() {
	if c := v.tcp(); c != nil {
		c.SetLinger(0)
	}
	if s, ok := v.Conn.(link.Stream); ok {
		s.Reset()
	}
	v.Close()
}

// AbortIf ends the connection: as broken if err says that it was not all.
func (v *Conn) AbortIf(err error) {
	if err != nil {
		v.Abort()
		return
	}
	v.Close()
}

// Source is what the visitor's bytes are read from.
func (v *Conn) Source() io.Reader {
	if s, ok := v.Conn.(link.Stream); ok && len(v.replay) == 0 {
		return s // which spares its reader a wake-up
	}
	return v
}

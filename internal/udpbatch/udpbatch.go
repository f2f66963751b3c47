// Package udpbatch reads and writes many datagrams at a time: with the kernel's segmentation
// offloads (GSO and GRO) if the system has them, else as many datagrams per call as the system
// takes, else one. It detects at run time what the system can do, and stops using an offload for
// good once a send with it is refused. Any net.PacketConn works; only a *net.UDPConn is fast.
package udpbatch

import (
	"errors"
	"hash/fnv"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// Addr is the address of a peer. Addrs can be compared by their AddrPort.
type Addr struct {
	// AddrPort is the address. For a network without IP addresses it is derived from the address's
	// text, and only useful for comparison.
	AddrPort netip.AddrPort
	net      net.Addr   // what the PacketConn takes; nil if AddrPort says all
	local    netip.Addr // the own address to send from, as far as the system says
}

// SamePath reports whether both are the same address of the peer, reached from the same local
// address.
func (a Addr) SamePath(b Addr) bool { return a.AddrPort == b.AddrPort && a.local == b.local }

// AddrOf returns the Addr of a network address.
func AddrOf(a net.Addr) Addr {
	if u, ok := a.(*net.UDPAddr); ok {
		ap := u.AddrPort()
		return Addr{AddrPort: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
	}
	h := fnv.New128a()
	_, _ = h.Write([]byte(a.Network() + "/" + a.String()))
	var b [16]byte
	h.Sum(b[:0])
	return Addr{AddrPort: netip.AddrPortFrom(netip.AddrFrom16(b), 0), net: a}
}

// AddrFrom returns the Addr of a UDP address that is reached from the local address from. If from
// is not valid, the system chooses it.
func AddrFrom(to netip.AddrPort, from netip.Addr) Addr {
	return Addr{AddrPort: netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), local: from}
}

// Local returns the local address to send from; not valid if the system chooses.
func (a Addr) Local() netip.Addr { return a.local }

// NetAddr returns the address as a net.Addr.
func (a Addr) NetAddr() net.Addr {
	if a.net != nil {
		return a.net
	}
	return net.UDPAddrFromAddrPort(a.AddrPort)
}

// Buffer is the result of one read: N bytes in B, which are datagrams of Segment bytes each, all
// from Addr; only the last may be shorter.
type Buffer struct {
	B       []byte
	N       int
	Segment int
	Addr    Addr
}

// Options say which features not to use. The zero value uses everything that the system has.
type Options struct {
	// NoOffload disables GSO and GRO, and NoGRO only the latter.
	NoOffload, NoGRO bool
	// Fragment lets the system fragment datagrams that are larger than the path allows: for
	// forwarded ones, whose size is not ours to choose.
	Fragment bool
	// NeverWait drops a datagram for which the socket has no room, as a congested network would,
	// instead of waiting for room, if the system can tell.
	NeverWait bool
	// Lost is called with the error of each datagram that the system does not send for a temporary
	// reason other than lack of room. It may be nil.
	Lost func(error)
	// SocketBuffer is the requested size of the kernel's buffers; the system may grant less. If
	// zero, 7 MiB.
	SocketBuffer int
}

// Conn reads and writes batches of datagrams. One goroutine may read, and any
// number may write.
type Conn struct {
	pc      net.PacketConn
	udp     *net.UDPConn // nil for any other PacketConn
	fast    *fastIO      // nil where one datagram a call is all there is
	refused atomic.Uint64
	told    func(error) // of a lost datagram; may be nil
}

// New returns a Conn over pc. If pc is a UDP socket, it sets the socket's buffer sizes and its
// don't-fragment mode, unless opt says otherwise; it is not an error if the system does not grant
// them.
func New(pc net.PacketConn, opt Options) *Conn {
	c := &Conn{pc: pc, told: opt.Lost}
	udp, ok := pc.(*net.UDPConn)
	if !ok {
		return c
	}
	c.udp = udp
	if opt.SocketBuffer == 0 {
		opt.SocketBuffer = 7 << 20
	}
	_ = udp.SetReadBuffer(opt.SocketBuffer)
	_ = udp.SetWriteBuffer(opt.SocketBuffer)
	if raw, err := udp.SyscallConn(); err == nil {
		tuneSocket(raw, opt.SocketBuffer, !opt.Fragment)
		if udp.RemoteAddr() != nil {
			hearRefusals(raw)
		}
		c.fast = newFastIO(raw, udp, opt)
	}
	return c
}

// BufferSize returns how many bytes each buffer given to ReadBatch should have.
func (c *Conn) BufferSize() int {
	if c.fast != nil && c.fast.gro {
		return 65535
	}
	if c.udp == nil {
		return 65535
	}
	return 9216
}

// Batch returns how many buffers a ReadBatch can fill at most.
func (c *Conn) Batch() int {
	switch {
	case c.fast == nil:
		return 1
	case c.fast.gro:
		return 8
	}
	return 32
}

// Offloads reports whether sends and receives currently use GSO and GRO.
func (c *Conn) Offloads() (gso, gro bool) {
	if c.fast == nil {
		return false, false
	}
	return c.fast.gso.Load(), c.fast.gro
}

// TooLarge returns how many datagrams the system refused to send because of their size.
func (c *Conn) TooLarge() uint64 { return c.refused.Load() }

// ReadBatch waits for at least one datagram, fills as many of bufs as there is data for, and
// returns how many it filled. An error that a later datagram can cure (a peer's ICMP message) is
// not returned.
func (c *Conn) ReadBatch(bufs []Buffer) (int, error) {
	for failures := 0; ; {
		n, err := c.readOnce(bufs)
		if n > 0 || err == nil {
			return n, nil
		}
		var timeout net.Error
		if errors.Is(err, net.ErrClosed) || (errors.As(err, &timeout) && timeout.Timeout()) {
			return 0, err
		}
		var errno syscall.Errno
		if failures++; failures > 64 || !errors.As(err, &errno) {
			return 0, err
		}
	}
}

func (c *Conn) readOnce(bufs []Buffer) (int, error) {
	if c.fast != nil {
		return c.fast.read(bufs)
	}
	b := &bufs[0]
	var err error
	if c.udp != nil {
		var ap netip.AddrPort
		b.N, ap, err = c.udp.ReadFromUDPAddrPort(b.B)
		b.Addr = Addr{AddrPort: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
	} else {
		var a net.Addr
		b.N, a, err = c.pc.ReadFrom(b.B)
		if err == nil {
			b.Addr = AddrOf(a)
		}
	}
	b.Segment = b.N
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// WriteBatch sends packets, each as one datagram, to one address. A datagram that is larger than
// the path allows, or for which the system has no room now, is lost as if the network had lost it;
// an error means that none of the rest could be sent.
func (c *Conn) WriteBatch(packets [][]byte, to Addr) error {
	if c.fast != nil {
		return c.fast.write(c, packets, to)
	}
	for _, p := range packets {
		var err error
		if c.udp != nil {
			if c.udp.RemoteAddr() != nil {
				_, err = c.udp.Write(p)
			} else {
				_, err = c.udp.WriteToUDPAddrPort(p, to.AddrPort)
			}
		} else {
			_, err = c.pc.WriteTo(p, to.NetAddr())
		}
		if err != nil && !c.lost(err) {
			return err
		}
	}
	return nil
}

// lost reports whether an error of a send means no more than a lost datagram.
func (c *Conn) lost(err error) bool {
	switch {
	case isTooLarge(err):
		c.refused.Add(1)
	case !isTransient(err):
		return false
	}
	if c.told != nil && !errors.Is(err, syscall.EAGAIN) {
		c.told(err)
	}
	return true
}

// LocalAddr returns the socket's local address.
func (c *Conn) LocalAddr() net.Addr { return c.pc.LocalAddr() }

// CanWait reports whether WaitRead waits.
func (c *Conn) CanWait() bool { return c.fast != nil }

// WaitRead waits until there is something to read, so that an idle socket needs no buffers in the
// meantime. Only the reading goroutine may call it.
func (c *Conn) WaitRead() error {
	if c.fast == nil {
		return nil
	}
	return c.fast.wait()
}

// SetReadDeadline makes a waiting ReadBatch or WaitRead fail at t.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.pc.SetReadDeadline(t) }

// Close closes the socket.
func (c *Conn) Close() error { return c.pc.Close() }

package simnet

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// socketBuffer is how many bytes wait in a connection before it drops more.
const socketBuffer = 4 << 20

// Conn is a net.PacketConn of a Network.
type Conn struct {
	network *Network

	mu       sync.Mutex
	ready    sync.Cond
	addr     netip.AddrPort
	queue    []packet
	queued   int
	closed   bool
	deadline time.Time
	timer    *time.Timer
}

type packet struct {
	data []byte
	from netip.AddrPort
}

// Rebind gives the connection another address, as happens when a NAT forgets its binding or the
// network changes. Packets to the old address are lost.
func (c *Conn) Rebind(addr string) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fmt.Errorf("rebind to simulated %q: %w", addr, err)
	}
	n := c.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns[to] != nil {
		return fmt.Errorf("rebind to simulated %s: address in use", to)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(n.conns, c.addr)
	c.addr = to
	n.conns[to] = c
	return nil
}

// deliver queues a packet, or drops it when the connection's buffer is full.
func (c *Conn) deliver(data []byte, from netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.queued+len(data) > socketBuffer {
		return
	}
	c.queue = append(c.queue, packet{data, from})
	c.queued += len(data)
	c.ready.Signal()
}

// ReadFrom waits for a packet.
func (c *Conn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.ReadFromAddrPort(b)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// ReadFromAddrPort is ReadFrom without allocating for the address.
func (c *Conn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, netip.AddrPort{}, net.ErrClosed
		case len(c.queue) > 0:
			p := c.queue[0]
			c.queue[0] = packet{}
			c.queue = c.queue[1:]
			c.queued -= len(p.data)
			return copy(b, p.data), p.from, nil
		case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
			return 0, netip.AddrPort{}, os.ErrDeadlineExceeded
		}
		c.ready.Wait()
	}
}

// WriteTo sends a copy of b.
func (c *Conn) WriteTo(b []byte, addr net.Addr) (int, error) {
	udp, ok := addr.(*net.UDPAddr)
	if !ok {
		return 0, fmt.Errorf("write to simulated %v: not a UDP address", addr)
	}
	return c.WriteToAddrPort(b, udp.AddrPort())
}

// WriteToAddrPort is like WriteTo for a netip.AddrPort.
func (c *Conn) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	c.mu.Lock()
	closed, from := c.closed, c.addr
	c.mu.Unlock()
	if closed {
		return 0, net.ErrClosed
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	c.network.send(from, to, append([]byte(nil), b...))
	return len(b), nil
}

// LocalAddr returns the connection's current address.
func (c *Conn) LocalAddr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return net.UDPAddrFromAddrPort(c.addr)
}

// Close closes the connection and frees its address.
func (c *Conn) Close() error {
	n := c.network
	n.mu.Lock()
	defer n.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.queue = nil
	if n.conns[c.addr] == c {
		delete(n.conns, c.addr)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.ready.Broadcast()
	return nil
}

// SetReadDeadline makes reads fail at t.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if c.timer != nil {
		c.timer.Stop()
	}
	if !t.IsZero() {
		c.timer = time.AfterFunc(time.Until(t), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ready.Broadcast()
		})
	}
	c.ready.Broadcast()
	return nil
}

// SetWriteDeadline does nothing: writes never block.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is SetReadDeadline.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

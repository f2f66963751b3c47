package origin

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"adit/internal/udpbatch"
)

const (
	// roundPause is how long a flow whose origin refused it at all addresses stays at the last one
	// before it tries all of them again.
	roundPause = time.Second
	// readBuffer is large enough for a burst of an origin's packets.
	readBuffer = 1 << 20
)

// Outlet is a socket connected to one of the addresses of a datagram service.
type Outlet struct {
	*udpbatch.Conn
	reader *udpbatch.LentReader
	failed atomic.Pointer[error] // of a packet sent, and not yet read
}

// dialOutlet opens a socket to addr.
func dialOutlet(addr netip.AddrPort) (*Outlet, error) {
	udp, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	reader, err := udpbatch.NewLentReader(udp)
	if err != nil {
		_ = udp.Close()
		return nil, err
	}
	o := &Outlet{reader: reader}
	o.Conn = udpbatch.New(udp, udpbatch.Options{
		NoGRO: true, Fragment: true, NeverWait: true, SocketBuffer: readBuffer, Lost: o.Lost,
	})
	return o, nil
}

// Read returns what the origin sent, valid until Done, or the error of a packet sent earlier:
// whether a read or a write reports an ICMP message is a matter of chance.
func (o *Outlet) Read() ([][]byte, error) {
	if err := o.failed.Swap(nil); err != nil {
		return nil, *err
	}
	return o.reader.Read()
}

// Done releases what was read.
func (o *Outlet) Done() { o.reader.Done() }

// Lost makes Read return err.
func (o *Outlet) Lost(err error) {
	o.failed.Store(&err)
	_ = o.SetReadDeadline(time.Unix(1, 0)) // the one that waits looks again
}

// Choice goes through the addresses of a datagram service, in rounds: only a refusal tells that the
// service is not at an address. The zero Choice has no address.
type Choice struct {
	service Service
	addrs   []netip.AddrPort
	at      int
	left    int       // addresses of this round
	began   time.Time // when the round did
	looked  time.Time // when its addresses were looked up
}

// Choose looks up the addresses of a service. It starts with the one at which the service answered
// before, if that is known and still among them.
func (d *Dialer) Choose(ctx context.Context, s Service, heard *netip.AddrPort) (Choice, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	addrs, err := d.resolve(ctx, s)
	if err != nil {
		return Choice{}, err
	}
	return newChoice(s, addrs, heard), nil
}

func newChoice(s Service, addrs []netip.AddrPort, heard *netip.AddrPort) Choice {
	c := Choice{service: s, addrs: addrs, left: len(addrs) - 1, began: time.Now(), looked: time.Now()}
	if heard != nil {
		c.at = max(0, slices.Index(addrs, *heard))
	}
	return c
}

// Follow looks up the name of c's service again if that has not been done for LookAgain, and
// reports whether it now leads elsewhere; c then goes there, as Choose would. A name that does not
// resolve leads where it did before.
func (d *Dialer) Follow(ctx context.Context, c *Choice, heard *netip.AddrPort) bool {
	if !c.service.Named() || time.Since(c.looked) < d.LookAgain {
		return false
	}
	now, err := d.Choose(ctx, c.service, heard)
	if c.looked = time.Now(); err != nil || now.has(c.Addr()) {
		return false
	}
	*c = now
	return true
}

// Addr returns the address to try now.
func (c *Choice) Addr() netip.AddrPort { return c.addrs[c.at] }

// Sole reports whether there is no other address.
func (c *Choice) Sole() bool { return len(c.addrs) < 2 }

// has reports whether addr is one of the addresses.
func (c *Choice) has(addr netip.AddrPort) bool { return slices.Contains(c.addrs, addr) }

// Next moves on to another address, and reports whether there is one to try now.
func (c *Choice) Next() bool {
	if now := time.Now(); c.left <= 0 && now.Sub(c.began) >= roundPause {
		c.left, c.began = len(c.addrs)-1, now
	}
	if c.left <= 0 {
		return false
	}
	c.left--
	c.at = (c.at + 1) % len(c.addrs)
	return true
}

// drop removes the current address, and reports whether others are left.
func (c *Choice) drop() bool {
	if len(c.addrs) == 1 {
		return false
	}
	c.addrs = slices.Delete(c.addrs, c.at, c.at+1)
	c.at %= len(c.addrs)
	return true
}

// Open opens a socket to the address to try now.
func (c *Choice) Open() (*Outlet, error) {
	o, err := dialOutlet(c.Addr())
	for err != nil && c.drop() { // its family may not be there at all
		o, err = dialOutlet(c.Addr())
	}
	if err != nil {
		return nil, c.service.Unreached(err)
	}
	return o, nil
}

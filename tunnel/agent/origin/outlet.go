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
	// roundPause is how long a flow whose origin refused it at all its addresses
	// stays at the last before it goes through them again.
	roundPause = time.Second
	// readBuffer holds a burst of an origin's packets.
	readBuffer = 1 << 20
)

// Outlet is a socket to one of the addresses of a service of datagrams.
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

// Read returns what the origin sent, until Done, or the error of a packet sent: which
// of the two calls is told of an ICMP message is up to chance.
func (o *Outlet) Read() ([][]byte, error) {
	if err := o.failed.Swap(nil); err != nil {
		return nil, *err
	}
	return o.reader.Read()
}

// Done gives back what was read.
func (o *Outlet) Done() { o.reader.Done() }

// Lost has a Read return err.
func (o *Outlet) Lost(err error) {
	o.failed.Store(&err)
	_ = o.SetReadDeadline(time.Unix(1, 0)) // the one that waits looks again
}

// Choice goes through the addresses of a service of datagrams, in rounds: nothing but
// a refusal tells at which of them it is. The zero Choice has none.
type Choice struct {
	service Service
	addrs   []netip.AddrPort
	at      int
	left    int       // addresses of this round
	began   time.Time // when the round did
	looked  time.Time // when its addresses were looked up
}

// Choose finds the addresses of a service; it begins with the one where the service
// was heard, if that is known and one of them.
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

// Follow looks the name of c's service up again, if that was not done for LookAgain, and
// reports whether it leads elsewhere by now; then c goes there, as
// Choose would. A name that does not resolve leads where it did.
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

// Addr is the address to try now.
func (c *Choice) Addr() netip.AddrPort { return c.addrs[c.at] }

// Sole reports whether there is no other address.
func (c *Choice) Sole() bool { return len(c.addrs) < 2 }

// has reports whether addr is one of the addresses.
func (c *Choice) has(addr netip.AddrPort) bool { return slices.Contains(c.addrs, addr) }

// Next goes on to another address, and reports whether there is one to try now.
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

// drop leaves out the present address, and reports whether others are left.
func (c *Choice) drop() bool {
	if len(c.addrs) == 1 {
		return false
	}
	c.addrs = slices.Delete(c.addrs, c.at, c.at+1)
	c.at %= len(c.addrs)
	return true
}

// Open opens a socket to the address that is to be tried.
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

package agent

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/internal/udpbatch"
)

const (
	// roundPause is how long a flow whose origin refused it at all its addresses
	// stays at the last before it goes through them again.
	roundPause = time.Second
	// refusalWait is how long after a packet a refusal of it can be expected.
	refusalWait = time.Second
	// lookAgain is how long an origin that is asked and does not answer is taken to
	// be where its name led, until the name is looked up again.
	lookAgain = 15 * time.Second
)

// outlet is a flow's socket to one of its origin's addresses.
type outlet struct {
	*udpbatch.Conn
	originReader
	failed atomic.Pointer[error] // of a packet sent, and not yet read
}

// Read returns what the origin sent, or the error of a packet sent: which of the
// two calls is told of an ICMP message is up to chance.
func (o *outlet) Read() ([][]byte, error) {
	if err := o.failed.Swap(nil); err != nil {
		return nil, *err
	}
	return o.originReader.Read()
}

// lost has a Read return err.
func (o *outlet) lost(err error) {
	o.failed.Store(&err)
	_ = o.SetReadDeadline(time.Unix(1, 0)) // the one that waits looks again
}

// choice goes through an origin's addresses, in rounds: nothing but a refusal
// tells at which of them a datagram service is.
type choice struct {
	addrs []netip.AddrPort
	at    int
	left  int       // addresses of this round
	began time.Time // when the round did
}

func newChoice(addrs []netip.AddrPort, heard *netip.AddrPort) choice {
	c := choice{addrs: addrs, left: len(addrs) - 1, began: time.Now()}
	if heard != nil {
		c.at = max(0, slices.Index(addrs, *heard))
	}
	return c
}

// next goes on to another address, and reports whether there is one to try now.
func (c *choice) next() bool {
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
func (c *choice) drop() bool {
	if len(c.addrs) == 1 {
		return false
	}
	c.addrs = slices.Delete(c.addrs, c.at, c.at+1)
	c.at %= len(c.addrs)
	return true
}

// resolve finds the origin's addresses.
func (fs *flows) resolve(ctx context.Context, f *flow) error {
	a, spec := fs.live.agent, f.route.spec
	ctx, cancel := context.WithTimeout(ctx, a.cfg.OriginTimeout)
	defer cancel()
	addrs, err := a.resolveOrigin(ctx, spec.LocalIP, spec.LocalPort)
	if err != nil {
		return err
	}
	f.origins, f.looked = newChoice(addrs, f.tunnel.heard.Load()), time.Now()
	return nil
}

// named reports whether the flow's origin has a name, which may come to mean
// another address.
func (f *flow) named() bool {
	_, err := netip.ParseAddr(f.route.spec.LocalIP)
	return err != nil
}

// strayed reports whether the name of the flow's origin leads elsewhere by now, and
// has the flow go there. A name that does not resolve leads where it did.
func (fs *flows) strayed(ctx context.Context, f *flow) bool {
	if !f.named() || time.Since(f.looked) < fs.live.agent.lookAgain {
		return false
	}
	before := f.origins
	if err := fs.resolve(ctx, f); err != nil {
		f.looked = time.Now()
		return false
	}
	if slices.Contains(f.origins.addrs, before.addrs[before.at]) {
		f.origins = before
		return false
	}
	f.mu.Lock()
	f.outlet = nil // what the visitor sends waits
	f.mu.Unlock()
	return true
}

// connect opens a socket to the address that is to be tried, and sends what has
// waited for it.
func (fs *flows) connect(f *flow) (*outlet, error) {
	o, err := dialOutlet(f.origins.addrs[f.origins.at])
	for err != nil && f.origins.drop() { // its family may not be there at all
		o, err = dialOutlet(f.origins.addrs[f.origins.at])
	}
	if err != nil {
		return nil, describeOrigin(err, f.route.local)
	}
	for sent := 0; ; {
		f.mu.Lock()
		queued := f.queued[sent:]
		if len(queued) == 0 {
			f.outlet = o
			f.settle(len(f.origins.addrs) == 1)
		}
		f.mu.Unlock()
		if len(queued) == 0 {
			break
		}
		fs.write(f, o, queued)
		sent += len(queued)
	}
	if f.ended.Load() {
		_ = o.Close()
	}
	return o, nil
}

func dialOutlet(addr netip.AddrPort) (*outlet, error) {
	udp, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	origin, err := udpbatch.NewLentReader(udp)
	if err != nil {
		_ = udp.Close()
		return nil, err
	}
	o := &outlet{originReader: origin}
	o.Conn = udpbatch.New(udp, udpbatch.Options{
		NoGRO: true, Fragment: true, NeverWait: true, SocketBuffer: flowReadBuffer, Lost: o.lost,
	})
	return o, nil
}

// keep keeps the visitor's packets for a socket that is yet to come, as far as
// there is room. f.mu is held.
func (f *flow) keep(payloads [][]byte) {
	now := monotime.Now()
	if f.outlet != nil && len(f.queued) > 0 && now-f.since > refusalWait {
		f.settle(true) // a service that only listens
		return
	}
	if len(f.queued) == 0 {
		f.since = now
	}
	for _, payload := range payloads {
		if len(f.queued) < maxQueued && f.size+len(payload) <= maxQueuedBytes {
			f.queued = append(f.queued, append([]byte(nil), payload...))
			f.size += len(payload)
		}
	}
}

// settle notes whether the flow's socket is at the right address, as far as one
// can know: what was sent to it is then no more kept for another. f.mu is held.
func (f *flow) settle(sure bool) {
	f.unsure, f.since = !sure, monotime.Now()
	if sure {
		f.queued, f.size = nil, 0
	}
}

// answered notes that the origin is where the flow's packets go.
func (f *flow) answered() {
	if len(f.origins.addrs) < 2 {
		return
	}
	f.mu.Lock()
	f.settle(true)
	f.mu.Unlock()
	addr := f.origins.addrs[f.origins.at]
	f.tunnel.heard.Store(&addr)
}

// moves reports whether the flow, which was refused, is to try another address.
// If not, what was refused is given up.
func (f *flow) moves() bool {
	move := f.origins.next()
	f.mu.Lock()
	defer f.mu.Unlock()
	if move {
		f.outlet = nil // what the visitor sends waits
	} else {
		f.queued, f.size = nil, 0
	}
	return move
}

package record

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"time"

	"adit/internal/udpbatch"
)

// Messages about paths: application data whose first byte is at or above
// firstReserved, eight bytes after it. They exist only under Connection IDs.
const (
	firstReserved = 0xf0
	pathChallenge = 0xf0
	pathResponse  = 0xf1
	pathSize      = 9
)

// challengeEvery is how often a path that is not yet proven is asked about.
const challengeEvery = 100 * time.Millisecond

// lingerOld is how long a client still reads the socket it left, after the new
// one has proven to work: what was under way to the old address is not lost.
const lingerOld = 3 * time.Second

// challenge is what a new address of the peer was asked, by the goroutine in Receive.
type challenge struct {
	addr  udpbatch.Addr
	token [8]byte
	at    time.Time
}

// noticePath is told of the newest authentic record. If it came from elsewhere,
// that address is asked to prove itself; until then everything goes on to the
// old one (RFC 9146 §6), so that an address that is not the peer's gets less
// from us than it sent.
func (c *Conn) noticePath(in *inbound) {
	remote := c.remote.Load()
	if c.isClient || in.from.SamePath(*remote) {
		return
	}
	if in.from.AddrPort == remote.AddrPort {
		from := in.from // the peer is where it was: it is our own address that changed
		c.remote.Store(&from)
		return
	}
	if c.pending.addr.AddrPort == in.from.AddrPort {
		if in.at.Sub(c.pending.at) < challengeEvery {
			return
		}
	} else {
		c.pending.addr = in.from
		_, _ = rand.Read(c.pending.token[:])
	}
	c.pending.at = in.at
	c.sendPath(pathChallenge, c.pending.token[:], in.from)
}

// pathMessage deals with a message of the kinds above. Unknown kinds are left
// for later versions, and ignored.
func (c *Conn) pathMessage(plain []byte, in *inbound) {
	if len(plain) != pathSize {
		return
	}
	switch plain[0] {
	case pathChallenge:
		c.sendPath(pathResponse, plain[1:], in.from)
	case pathResponse:
		if c.pending.addr.AddrPort.IsValid() && c.pending.addr.AddrPort == in.from.AddrPort &&
			subtle.ConstantTimeCompare(plain[1:], c.pending.token[:]) == 1 {
			addr := c.pending.addr
			c.pending = challenge{}
			c.remote.Store(&addr)
			c.pathMoved()
		}
	}
}

// sendPath sends a message about a path to an address. It has numbers of its
// own, so that those of application data have no gaps.
func (c *Conn) sendPath(kind byte, token []byte, to udpbatch.Addr) {
	p := make([]byte, c.out.head+pathSize+c.out.tail)
	p[c.out.head] = kind
	copy(p[c.out.head+1:], token)
	c.sendMu.Lock()
	if c.ctl >= controlBase-1 {
		c.sendMu.Unlock()
		return
	}
	number := controlBase + c.ctl
	c.ctl++
	c.out.seal(p, typeApplication, epoch1|number)
	c.sendMu.Unlock()
	_ = c.write([][]byte{p}, to)
}

// pathProbe repeats a client's challenge over a new socket until a record comes
// back. It is guarded by moveMu.
type pathProbe struct {
	timer *time.Timer
	wait  time.Duration
	token [8]byte
}

func (p *pathProbe) stop() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// Rebind makes a client go on over another socket under the same Connection
// ID. PathChanged fires when the peer was first heard over it; the socket before
// is closed a little later, or with the next Rebind. The session owns pc from then on, also on an error.
func (c *Conn) Rebind(pc net.PacketConn) error {
	if !c.isClient || !c.state.ConnectionIDs {
		_ = pc.Close()
		return errors.New("rebind: only a client whose session has connection IDs can move")
	}
	s := &socket{conn: udpbatch.New(pc, c.cfg.batchOptions())}
	c.moveMu.Lock()
	select {
	case <-c.done:
		c.moveMu.Unlock()
		_ = pc.Close()
		return fmt.Errorf("rebind to %v: %w", pc.LocalAddr(), c.err)
	default:
	}
	c.probe.stop()
	if c.old != nil {
		_ = c.old.conn.Close()
	}
	c.old = c.sock.Swap(s)
	c.moving.Store(true)
	c.readers.Go(func() { c.readFrom(s) })
	c.probe.wait = 200 * time.Millisecond
	_, _ = rand.Read(c.probe.token[:])
	c.moveMu.Unlock()
	c.askPath(s)
	return nil
}

// askPath sends the challenge, and again until the path is proven.
func (c *Conn) askPath(s *socket) {
	c.moveMu.Lock()
	if c.Err() != nil || !c.moving.Load() || c.sock.Load() != s || c.probe.wait > 20*time.Second {
		c.moveMu.Unlock()
		return
	}
	token := c.probe.token
	c.probe.timer = time.AfterFunc(c.probe.wait, func() { c.askPath(s) })
	c.probe.wait *= 2
	c.moveMu.Unlock()
	c.sendPath(pathChallenge, token[:], *c.remote.Load())
}

// provePath ends a Rebind: an authentic record came over the new socket.
func (c *Conn) provePath(in *inbound) {
	if !c.moving.Load() || in.src != c.sock.Load() {
		return
	}
	c.moveMu.Lock()
	proven := c.moving.CompareAndSwap(true, false)
	if proven {
		c.probe.stop()
		if old := c.old; old != nil {
			c.probe.timer = time.AfterFunc(lingerOld, func() { _ = old.conn.Close() })
		}
	}
	c.moveMu.Unlock()
	if proven {
		c.pathMoved()
	}
}

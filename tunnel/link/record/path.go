package record

import (
	"crypto/rand"
	"crypto/subtle"
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

// path is a way to the peer: through which socket, and to what address.
type path struct {
	sock *socket
	addr udpbatch.Addr
}

// same reports whether both lead to one address through one socket.
func (p *path) same(q *path) bool {
	return p.sock == q.sock && p.addr.AddrPort == q.addr.AddrPort
}

// challenge is what a new way to the peer was asked, by the goroutine in Receive.
type challenge struct {
	path  path
	token [8]byte
	at    time.Time
}

// noticePath is told of the newest authentic record. If it came another way,
// that is asked to prove itself; until then everything goes on the old one
// (RFC 9146 §6), so that an address that is not the peer's gets little from us:
// with the answer to a challenge of its own at most twice what it sent.
func (c *Conn) noticePath(in *inbound) {
	cur := c.at.Load()
	if c.isClient || in.src == cur.sock && in.from.SamePath(cur.addr) {
		return
	}
	from := path{in.src, in.from}
	if from.same(cur) {
		c.at.Store(&from) // the peer is where it was: it is our own address that changed
		return
	}
	if c.pending.path.same(&from) {
		if in.at.Sub(c.pending.at) < challengeEvery {
			return
		}
	} else {
		c.pending.path = from
		_, _ = rand.Read(c.pending.token[:])
	}
	c.pending.at = in.at
	c.sendPath(pathChallenge, c.pending.token[:], &from)
}

// pathMessage deals with a message of the kinds above. Unknown kinds are left
// for later versions, and ignored.
func (c *Conn) pathMessage(plain []byte, in *inbound) {
	if len(plain) != pathSize {
		return
	}
	from := path{in.src, in.from}
	switch plain[0] {
	case pathChallenge:
		// A client stands by the one way that it uses: a late challenge on one
		// that it left must not bring the server back there.
		if !c.isClient || in.src == c.at.Load().sock {
			c.sendPath(pathResponse, plain[1:], &from)
		}
	case pathResponse:
		if c.pending.path.same(&from) && subtle.ConstantTimeCompare(plain[1:], c.pending.token[:]) == 1 {
			c.pending = challenge{}
			c.leaveDetour(c.at.Swap(&from).sock, in.src)
			if c.listener != nil {
				c.listener.keepFarewell(c)
			}
			c.pathMoved()
		}
	}
}

// sendPath sends a message about a path on it. It has numbers of its own, so
// that those of application data have no gaps.
func (c *Conn) sendPath(kind byte, token []byte, to *path) {
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

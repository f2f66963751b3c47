package record

import (
	"crypto/rand"
	"crypto/subtle"
	"time"

	"adit/internal/udpbatch"
)

// Path messages: application data whose first byte is at or above firstReserved, followed by eight
// bytes. They exist only with Connection IDs.
const (
	firstReserved = 0xf0
	pathChallenge = 0xf0
	pathResponse  = 0xf1
	pathSize      = 9
)

// challengeEvery is how often an unproven path is challenged.
const challengeEvery = 100 * time.Millisecond

// lingerOld is how long a client still reads the socket it left, after the new one has proven to
// work, so that what was in flight to the old address is not lost.
const lingerOld = 3 * time.Second

// path is a way to the peer: the socket, and the address.
type path struct {
	sock *socket
	addr udpbatch.Addr
}

// same reports whether both lead to the same address through the same socket.
func (p *path) same(q *path) bool {
	return p.sock == q.sock && p.addr.AddrPort == q.addr.AddrPort
}

// challenge is the current challenge on a new path to the peer, used by the goroutine in Receive.
type challenge struct {
	path  path
	token [8]byte
	at    time.Time
}

// noticePath is called with the newest authentic record. If it arrived on a different path, that
// path is challenged to prove itself; until then everything is sent on the old one (RFC 9146 §6),
// so that an address that is not the peer's gets little from us: including the answer to its own
// challenge, at most twice what it sent.
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

// pathMessage handles a path message. Unknown kinds are left to later versions, and ignored.
func (c *Conn) pathMessage(plain []byte, in *inbound) {
	if len(plain) != pathSize {
		return
	}
	from := path{in.src, in.from}
	switch plain[0] {
	case pathChallenge:
		// A client sticks to the one path that it uses: a late challenge on a path that it left
		// must not bring the server back to it.
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

// sendPath sends a path message on that path. Path messages have numbers of their own, so that
// those of application data have no gaps.
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

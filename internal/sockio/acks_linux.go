package sockio

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"adit/internal/monotime"
)

// A program that leaves Nagle's algorithm on and writes what it says in parts, as
// Python's http.server and Django's runserver do with head and body, sends the second
// only when the first is acknowledged; and the system at the other end puts that off, by
// 40 ms, in the hope of something to send it with. A connection that is used again and
// again, as those to a local service are, meets that with every answer. So where what
// follows came after just that time, once, what is read from there is acknowledged at
// once from then on.

// From shortest to longest after it waits, what comes is what a late acknowledgement has
// released: Linux puts one off for 40 ms at least (TCP_DELACK_MIN).
const (
	shortest = 38 * time.Millisecond
	longest  = 80 * time.Millisecond
)

// acks acknowledges what is read of a connection. A nil one leaves it to the system. But
// for writes its fields are the reader's.
type acks struct {
	peer   *Peer
	writes atomic.Uint32 // calls so far

	heard  bool          // something was read
	at     uint32        // writes, when that was the last time
	waits  time.Duration // since when it waits for more, by monotime.Now; 0: it does not
	waited uint32        // writes, when it began to
}

// LearnOf makes the connection learn about its peer, and use what others have learned. It must be
// called before anything is read.
func (c *Conn) LearnOf(p *Peer) { c.in.acks = &acks{peer: p} }

// wrote notes that something is written, which takes the acknowledgement along.
func (a *acks) wrote() {
	if a != nil {
		a.writes.Add(1)
	}
}

// came notes that so many bytes were read; none are an end, or an error.
func (a *acks) came(n int) {
	if a == nil || n == 0 {
		return
	}
	now := a.writes.Load()
	if a.waits != 0 && a.waited == now {
		if took := monotime.Now() - a.waits; took >= shortest && took < longest {
			a.peer.holds.Store(true)
		}
	}
	a.heard, a.at, a.waits = true, now, 0
}

// wait notes that nothing more has come. If something has since the last write, it is
// not acknowledged yet.
func (a *acks) wait(fd uintptr) {
	if a == nil {
		return
	}
	now := a.writes.Load()
	if a.waits = 0; !a.heard || a.at != now {
		return
	}
	if a.peer.holds.Load() {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
		return
	}
	a.waits, a.waited = monotime.Now(), now
}

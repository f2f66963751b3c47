package backlog

import (
	"cmp"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
)

// What a visitor has sent by HTTP/2 or HTTP/3 and an origin has not taken waits in
// the memory of net/http or quic-go, up to a window for each connection. An origin
// that takes nothing is easily had, and so are many connections to it: so it has
// the bounds of what origins send. By HTTP/1 it waits in the visitor's own socket.

// untaken is the bodies of requests by HTTP/2 and HTTP/3 that are under way, and
// what comes of WebSockets by them.
type untaken struct {
	room room

	mu      sync.Mutex
	all     map[*Held]struct{}
	givenUp atomic.Uint64
}

// Held is what one of them may hold. It reads the body of net/http or quic-go.
type Held struct {
	body   io.Reader
	conn   any // what it shares a window with
	window int64
	length int64 // of the body; negative: not known
	visit  interface{ End() }

	agent atomic.Value // tells whose origin is to take it; empty: it is not known yet
	read  atomic.Int64
	away  atomic.Int64 // since when nobody reads, by monotime.Now; 0: it is read, and nothing waits
}

// Request follows what comes with a request, until Forget, and returns what to read of
// it. conn is the connection, whose requests share a window; the length is negative if
// it is not known. Who is given up is told by visit.
func (b *Backlog) Request(h *Held, body io.Reader, conn any, window, length int64, visit interface{ End() }) io.Reader {
	h.body, h.conn, h.window, h.length, h.visit = body, conn, window, length, visit
	h.away.Store(int64(monotime.Now()))
	u := &b.untaken
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[*Held]struct{})
	}
	u.all[h] = struct{}{}
	return h
}

// Forget ends what Request began.
func (b *Backlog) Forget(h *Held) {
	u := &b.untaken
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, h)
}

// TakenBy notes whose origin is to take it, by whatever tells its agent from others.
func (h *Held) TakenBy(agent any) { h.agent.Store(agent) }

// Read reads what has come. Once that is all, nothing waits.
func (h *Held) Read(b []byte) (int, error) {
	h.away.Store(0)
	n, err := h.body.Read(b)
	h.read.Add(int64(n))
	if err == nil {
		h.away.Store(int64(monotime.Now()))
	}
	return n, err
}

// most is how much may wait at most.
func (h *Held) most() int64 {
	if h.length < 0 {
		return h.window
	}
	return min(max(h.length-h.read.Load(), 0), h.window)
}

// relieve gives up so many requests that what may be untaken is within its bounds.
func (u *untaken) relieve(now time.Duration) {
	type one struct {
		*Held
		waiting
	}
	var list []one
	u.mu.Lock()
	for h := range u.all {
		if away := time.Duration(h.away.Load()); away != 0 {
			list = append(list, one{h, waiting{away, h.agent.Load(), h.most(), h.visit.End}})
		}
	}
	u.mu.Unlock()
	slices.SortFunc(list, func(a, b one) int { return cmp.Compare(a.waiting.away, b.waiting.away) })
	all, left := make([]waiting, 0, len(list)), make(map[any]int64)
	for _, w := range list {
		if _, known := left[w.conn]; !known {
			left[w.conn] = w.window
		}
		w.size = min(w.size, left[w.conn]) // the rest of its connection's window
		left[w.conn] -= w.size
		all = append(all, w.waiting)
	}
	u.givenUp.Add(u.room.relieve(all, now))
}

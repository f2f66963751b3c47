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

// What a visitor has sent by HTTP/2 or HTTP/3 and an origin has not read stays in the memory
// of net/http or quic-go, up to a window per connection. An origin that reads nothing is easy
// to come by, and so are many connections to it, so this data has the same limits as what
// origins send. Over HTTP/1 it stays in the socket buffers.

// untaken is the set of HTTP/2 and HTTP/3 request bodies in progress, including the data of
// WebSockets over them.
type untaken struct {
	room room

	mu      sync.Mutex
	all     map[*Held]struct{}
	givenUp atomic.Uint64
}

// Held is the data of one request. It reads the body provided by net/http or quic-go.
type Held struct {
	body   io.Reader
	conn   any // connection whose window it shares
	window int64
	length int64 // of the body; negative: unknown
	visit  interface{ End() }

	agent atomic.Value // agent of the origin that reads it; empty: not known yet
	read  atomic.Int64
	away  atomic.Int64 // since when nobody reads, by monotime.Now; 0: somebody does, and nothing waits
}

// Request tracks the data of a request until Forget, and returns the reader to use for it.
// conn is the connection, whose requests share a window; length is negative if unknown. visit
// is ended if the request is given up.
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

// Forget ends the tracking begun by Request.
func (b *Backlog) Forget(h *Held) {
	u := &b.untaken
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, h)
}

// TakenBy records which agent's origin reads the data, by any value that identifies the agent.
func (h *Held) TakenBy(agent any) { h.agent.Store(agent) }

// Read reads what has arrived. After the end of the data nothing waits.
func (h *Held) Read(b []byte) (int, error) {
	h.away.Store(0)
	n, err := h.body.Read(b)
	h.read.Add(int64(n))
	if err == nil {
		h.away.Store(int64(monotime.Now()))
	}
	return n, err
}

// most returns the most bytes that can be waiting.
func (h *Held) most() int64 {
	if h.length < 0 {
		return h.window
	}
	return min(max(h.length-h.read.Load(), 0), h.window)
}

// relieve gives up requests until the rest are within the limits.
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
		w.size = min(w.size, left[w.conn]) // no more than what is left of the connection's window
		left[w.conn] -= w.size
		all = append(all, w.waiting)
	}
	u.givenUp.Add(u.room.relieve(all, now))
}

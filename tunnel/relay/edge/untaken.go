package edge

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/edge/visitor"
)

// What a visitor has sent by HTTP/2 or HTTP/3 and an origin has not taken waits in
// the memory of net/http or quic-go, up to a window for each connection. An origin
// that takes nothing is easily had, and so are many connections to it: so it has
// the bounds of what origins send. By HTTP/1 it waits in the visitor's own socket.
const requestWindow = 1 << 20 // of a connection by HTTP/2; quicWindow is that by HTTP/3

// untaken is the bodies of requests by HTTP/2 and HTTP/3 that are under way, and
// what comes of WebSockets by them.
type untaken struct {
	room room

	mu      sync.Mutex
	all     map[*held]struct{}
	givenUp atomic.Uint64
}

// held is what one of them may hold. It reads the body of net/http or quic-go.
type held struct {
	body   io.Reader
	conn   any // what it shares a window with
	window int64
	length int64 // of the body; negative: not known
	visit  *presence

	agent atomic.Pointer[Agent] // whose origin is to take it; nil: it is not known yet
	read  atomic.Int64
	away  atomic.Int64 // since when nobody reads, by monotime.Now; 0: it is read, and nothing waits
}

// follow follows what comes with a request, until forget, and returns what to
// read of it. The length is negative if it is not known.
func (u *untaken) follow(h *held, body io.Reader, r *http.Request, length int64, visit *presence) io.Reader {
	h.body, h.length, h.visit = body, length, visit
	h.conn, h.window = visitor.FromContext(r.Context()), requestWindow
	if r.ProtoMajor == 3 {
		h.conn, h.window = r.Context().Value(quicConnKey{}), quicWindow
	}
	h.away.Store(int64(monotime.Now()))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[*held]struct{})
	}
	u.all[h] = struct{}{}
	return h
}

func (u *untaken) forget(h *held) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, h)
}

// Read reads what has come. Once that is all, nothing waits.
func (h *held) Read(b []byte) (int, error) {
	h.away.Store(0)
	n, err := h.body.Read(b)
	h.read.Add(int64(n))
	if err == nil {
		h.away.Store(int64(monotime.Now()))
	}
	return n, err
}

// most is how much may wait at most.
func (h *held) most() int64 {
	if h.length < 0 {
		return h.window
	}
	return min(max(h.length-h.read.Load(), 0), h.window)
}

// relieve gives up so many requests that what may be untaken is within its bounds.
func (u *untaken) relieve(now time.Duration) {
	type one struct {
		*held
		waiting
	}
	var list []one
	u.mu.Lock()
	for h := range u.all {
		if away := time.Duration(h.away.Load()); away != 0 {
			list = append(list, one{h, waiting{away, h.agent.Load(), h.most(), h.visit.end}})
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

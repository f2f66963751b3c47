package visitor

import (
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"adit/internal/netblock"
)

// Over HTTP/2 and HTTP/3, one connection has many requests, and each one in progress holds its
// head and some 40 KiB more. The limit on connections alone therefore does not bound the
// memory that an address can take.
const (
	StreamsOfConnection  = 250      // HTTP/2 streams of one connection, at once
	requestsOfConnection = 8        // requests in progress, per connection that an address may have
	headOfRequest        = 16 << 10 // bytes of head that count as one request more
	sizeOfField          = 80       // bytes of overhead per field
)

// crowds counts the HTTP/2 and HTTP/3 requests in progress, by address.
type crowds struct {
	mu   sync.Mutex
	of   map[netip.Prefix]int
	open map[netip.Prefix]int // upper bound on open streams; see streaming
}

// streaming is an upper bound on the open streams of a connection: net/http only reports when
// there are none left.
type streaming struct {
	used atomic.Bool // false for HTTP/1.1, which then costs nothing

	from netip.Prefix // crowds.mu guards this field and those below
	most int
	gone bool
}

// take counts a request of weight n. It reports false if the address has too many.
func (c *crowds) take(from netip.Prefix, n, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[from]+n > limit {
		return false
	}
	if c.of == nil {
		c.of = make(map[netip.Prefix]int)
	}
	c.of[from] += n
	return true
}

// begin counts a new stream on a connection and returns the upper bound on open streams for
// the address.
func (c *crowds) begin(s *streaming, from netip.Prefix) int {
	s.used.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[netip.Prefix]int)
	}
	if s.most < StreamsOfConnection && !s.gone {
		s.from = from
		s.most++
		c.open[from]++
	}
	return c.open[from]
}

// rest notes that a connection has no open streams and, if gone, will have no more.
func (c *crowds) rest(s *streaming, gone bool) {
	if !gone && !s.used.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.gone = s.gone || gone
	if s.most == 0 {
		return
	}
	if c.open[s.from] -= s.most; c.open[s.from] <= 0 {
		delete(c.open, s.from)
	}
	s.most = 0
}

func (c *crowds) give(from netip.Prefix, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[from] -= n; c.of[from] <= 0 {
		delete(c.of, from)
	}
}

// Place is the place of one request in the count for its visitor's address.
type Place struct {
	of    *crowds // nil: not counted
	from  netip.Prefix
	n     int
	taken bool // flush the answer before giving the place back
}

// Leave gives the place back.
func (p Place) Leave() {
	if p.of != nil {
		p.of.give(p.from, p.n)
	}
}

// End flushes the answer before the place is given back, if the request's head is large or the
// address may have many unread answers. net/http keeps a request in memory until the last of
// its answer has been sent, and holds that back until the handler returns. For all other
// requests the additional frame is not worth it.
func (p Place) End(w http.ResponseWriter) {
	if p.taken {
		_ = http.NewResponseController(w).Flush() // an error means that the visitor has gone
	}
}

// Crowd counts a request of a visitor or, if the visitor's address has too many in progress,
// refuses it. A load balancer that does not name its visitors may have any number, just as it
// may have any number of connections. direct says that the connection is the visitor's own.
func (v *Admission) Crowd(w http.ResponseWriter, r *http.Request, client netip.Addr, direct bool) (p Place, in bool) {
	if r.ProtoMajor < 2 || v.Trusted(client) {
		return Place{}, true
	}
	p = Place{of: &v.crowds, from: netblock.Of(client), n: 1 + headSize(r)/headOfRequest}
	limit := requestsOfConnection * v.cfg.PerAddress
	p.taken = p.n > 1
	if c := FromContext(r.Context()); c != nil && direct {
		p.taken = p.of.begin(&c.streams, p.from) > limit || p.taken
	}
	if p.of.take(p.from, p.n, limit) {
		return p, true
	}
	v.turnAway(client, "too many requests of this address")
	// Visitors that do not read answers leave these refusals waiting, too, so there is only
	// limited room for them.
	if !p.of.take(p.from, p.n, limit+limit/8) {
		panic(http.ErrAbortHandler)
	}
	defer p.Leave()
	v.cfg.Refuse(w, r)
	p.End(w)
	return p, false
}

// headSize estimates the memory that a request's head takes.
func headSize(r *http.Request) int {
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + sizeOfField
		}
	}
	return size
}

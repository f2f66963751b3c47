package visitor

import (
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"adit/internal/netblock"
)

// By HTTP/2 and HTTP/3 one connection has many requests, and each that is under way
// holds its head and some 40 KiB besides: the connections that an address may have are
// no bound of what it can have held.
const (
	StreamsOfConnection  = 250      // by HTTP/2, at once
	requestsOfConnection = 8        // under way, for each connection that an address may have
	headOfRequest        = 16 << 10 // bytes of a head; as many more count as another request
	sizeOfField          = 80       // bytes that a field takes beside its own
)

// crowds are the requests by HTTP/2 and HTTP/3 that are under way, by address.
type crowds struct {
	mu   sync.Mutex
	of   map[netip.Prefix]int
	open map[netip.Prefix]int // what its connections may have of streams that are open; see streaming
}

// streaming is what a connection may have of streams that are open: net/http says only
// when there are none.
type streaming struct {
	used atomic.Bool // by HTTP/1.1 it is not, and costs nothing

	from netip.Prefix // crowds.mu guards this and what follows
	most int
	gone bool
}

// take counts a request that is worth n; it reports false if the address has too many.
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

// begin counts a stream of a connection of the address, and returns how many of those
// the address may have by now.
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

// rest notes that a connection has no stream that is open, and will have none if it
// is gone.
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

// Place is one request among those of its visitor's address.
type Place struct {
	of    *crowds // nil: it is not counted
	from  netip.Prefix
	n     int
	taken bool // its answer is to be taken before the place is another's
}

// Leave gives the place back.
func (p Place) Leave() {
	if p.of != nil {
		p.of.give(p.from, p.n)
	}
}

// End has a visitor take its answer before its place is another's, if its head is a
// large one, or its address may have many answers that it has not taken: net/http keeps
// a request until the last of its answer has gone, which it holds back until the
// handler has returned. One more frame is too much for all others.
func (p Place) End(w http.ResponseWriter) {
	if p.taken {
		_ = http.NewResponseController(w).Flush() // who has gone has taken what it wants
	}
}

// Crowd counts a request of a visitor, or answers it if the visitor's address has too
// many under way. A load balancer that says nothing of its visitors may have any
// number, as it may of connections. direct says that the connection is the visitor's own.
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
	// Who takes no answers has those that say so wait, too: there is room for some.
	if !p.of.take(p.from, p.n, limit+limit/8) {
		panic(http.ErrAbortHandler)
	}
	defer p.Leave()
	v.cfg.Refuse(w, r)
	p.End(w)
	return p, false
}

// headSize is about what a request's head takes.
func headSize(r *http.Request) int {
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + sizeOfField
		}
	}
	return size
}

package edge

import (
	"net/http"
	"net/netip"
	"sync"

	"adit/internal/netblock"
	"adit/tunnel/relay/policy"
)

// By HTTP/2 and HTTP/3 one connection has many requests, and each that is under way
// holds its head and some 40 KiB besides: the connections that an address may have are
// no bound of what it can have held.
const (
	requestsOfConnection = 8        // under way, for each connection that an address may have
	headOfRequest        = 16 << 10 // bytes of a head; as many more count as another request
)

// crowds are the requests by HTTP/2 and HTTP/3 that are under way, by address.
type crowds struct {
	mu sync.Mutex
	of map[netip.Prefix]int
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

func (c *crowds) give(from netip.Prefix, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[from] -= n; c.of[from] <= 0 {
		delete(c.of, from)
	}
}

// place is one request among those of its visitor's address.
type place struct {
	of   *crowds // nil: it is not counted
	from netip.Prefix
	n    int
}

func (p place) leave() {
	if p.of != nil {
		p.of.give(p.from, p.n)
	}
}

// end has a visitor take its answer before its place is another's, if its head is a
// large one: net/http keeps that until the last of the answer has gone, which it holds
// back until the handler has returned. One more frame is too much for all others.
func (p place) end(w http.ResponseWriter) {
	if p.n > 1 {
		_ = http.NewResponseController(w).Flush() // who has gone has taken what it wants
	}
}

// crowd counts a request of a visitor, or answers it if the visitor's address has too
// many under way. A load balancer that says nothing of its visitors may have any
// number, as it may of connections.
func (e *Edge) crowd(w http.ResponseWriter, r *http.Request, client netip.Addr) (p place, in bool) {
	if r.ProtoMajor < 2 || e.trusted(client) {
		return place{}, true
	}
	p = place{&e.crowds, netblock.Of(client), 1 + headSize(r)/headOfRequest}
	limit := requestsOfConnection * e.limits.ConnectionsPerAddress
	if p.of.take(p.from, p.n, limit) {
		return p, true
	}
	e.turnAway(client, "too many requests of this address")
	// Who takes no answers has those that say so wait, too: there is room for some.
	if !p.of.take(p.from, p.n, limit+limit/8) {
		panic(http.ErrAbortHandler)
	}
	defer p.leave()
	w.Header().Set("Retry-After", "1")
	e.refuse(w, r, page{status: http.StatusTooManyRequests, title: http.StatusText(http.StatusTooManyRequests), text: policy.Text(policy.RulePerAddress)})
	p.end(w)
	return p, false
}

// headSize is about what a request's head takes.
func headSize(r *http.Request) int {
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	return size
}

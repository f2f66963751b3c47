package edge

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"adit/internal/netblock"
)

// arriving is how long a request may be on its way when the edge begins to end.
const arriving = 250 * time.Millisecond

// visitors counts open connections by address, and knows those that need not
// be waited for when the edge ends: they have asked for nothing yet.
type visitors struct {
	limit int

	mu       sync.Mutex
	open     map[netip.Prefix]int
	all      int
	empty    chan struct{} // closed when all is 0 again; nil unless waited for
	idle     map[*visitor]func()
	draining bool // no more are let in
	cut      bool // nor may one that is open ask for nothing
}

// enter counts a connection in, unless its address has too many. A load balancer's are
// many visitors', and not bounded.
func (v *visitors) enter(a netip.Addr, balancer bool) bool {
	from := netblock.Of(a)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == nil {
		v.open = make(map[netip.Prefix]int)
	}
	if v.draining || v.open[from] >= v.limit && !balancer {
		return false
	}
	v.open[from]++
	v.all++
	return true
}

func (v *visitors) leave(a netip.Addr) {
	from := netblock.Of(a)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open[from]--; v.open[from] <= 0 {
		delete(v.open, from)
	}
	if v.all--; v.all == 0 && v.empty != nil {
		close(v.empty)
		v.empty = nil
	}
}

// rest notes that c asks for nothing now; end ends it, at once if such
// connections were ended before. It must not wait.
func (v *visitors) rest(c *visitor, end func()) {
	v.mu.Lock()
	cut := v.cut
	if !cut {
		if v.idle == nil {
			v.idle = make(map[*visitor]func())
		}
		v.idle[c] = end
	}
	v.mu.Unlock()
	if cut {
		end()
	}
}

// work notes that c has a request or stream under way, or has gone.
func (v *visitors) work(c *visitor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.idle, c)
}

// drain lets no more connections in, and after arriving ends those that ask for
// nothing: the request of one of them may be on its way.
func (v *visitors) drain(ctx context.Context) {
	v.mu.Lock()
	v.draining = true
	v.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, arriving)
	defer cancel()
	v.wait(short)
	v.mu.Lock()
	v.cut = true
	idle := v.idle
	v.idle = nil
	v.mu.Unlock()
	for _, end := range idle {
		end()
	}
}

// wait returns when no connection is open or ctx ends.
func (v *visitors) wait(ctx context.Context) {
	v.mu.Lock()
	if v.all == 0 {
		v.mu.Unlock()
		return
	}
	if v.empty == nil {
		v.empty = make(chan struct{})
	}
	empty := v.empty
	v.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}

type visitorKey struct{}

// withVisitor puts the connection that requests come on into their context.
func withVisitor(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, visitorOf(conn))
}

// visitorOf is the visitor underneath a connection of an http.Server.
func visitorOf(conn net.Conn) *visitor {
	switch c := conn.(type) {
	case *visitor:
		return c
	case *tls.Conn:
		return visitorOf(c.NetConn())
	case *halfOpen:
		return visitorOf(c.Conn)
	case secureHalfOpen:
		return visitorOf(c.Conn)
	}
	return nil
}

// follow is the http.Server's word on a connection. From the first byte of a
// request until its header is whole, nothing is asked for yet; http.Server
// itself ends those that are between two requests.
func (e *Edge) follow(conn net.Conn, state http.ConnState) {
	v := visitorOf(conn)
	if v == nil {
		return
	}
	switch state {
	case http.StateActive:
		e.visits.rest(v, v.cut)
	case http.StateIdle:
		e.visits.work(v)
		e.crowds.rest(&v.streams, false)
	case http.StateClosed:
		e.crowds.rest(&v.streams, true)
	}
}

// working notes that a request is whole.
func (e *Edge) working(ctx context.Context) {
	if v, _ := ctx.Value(visitorKey{}).(*visitor); v != nil {
		e.visits.work(v)
	}
}

package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"adit/internal/netblock"
)

// arriving is how long a request may be on its way when the edge begins to end.
const arriving = 250 * time.Millisecond

// visitors counts open connections by address and together, and knows those that can
// be spared: they ask for nothing now.
type visitors struct {
	limit int // of one address
	most  int // of all

	mu       sync.Mutex
	open     map[netip.Prefix]int
	all      int
	empty    chan struct{} // closed when all is 0 again; nil unless waited for
	idle     queue
	spared   uint64 // that made room
	draining bool   // no more are let in
	cut      bool   // nor may one that is open ask for nothing
}

// Why a connection is turned away.
var (
	errTurnedAway = errors.New("too many connections of this address")
	errFull       = errors.New("too many connections of all visitors")
)

// enter counts a connection in, unless its address has too many or all have. A load
// balancer's are many visitors', and bounded only with all. Where all are as many as
// may be, who has asked for nothing longest makes room, if that is not the newcomer itself;
// it may be nil.
func (v *visitors) enter(a netip.Addr, balancer bool, newcomer *visitor) error {
	from := netblock.Of(a)
	v.mu.Lock()
	if v.draining || v.open[from] >= v.limit && !balancer {
		v.mu.Unlock()
		return errTurnedAway
	}
	var makeRoom func()
	if v.all >= v.most {
		spared := v.idle.first
		if spared != nil && spared == newcomer {
			spared = newcomer.resting.after
		}
		// Who makes room is counted until it has gone.
		if spared == nil || v.all >= v.most+v.most/8 {
			v.mu.Unlock()
			return errFull
		}
		makeRoom = spared.resting.end
		v.idle.remove(spared)
		v.spared++
	}
	if v.open == nil {
		v.open = make(map[netip.Prefix]int)
	}
	v.open[from]++
	v.all++
	v.mu.Unlock()
	if makeRoom != nil {
		makeRoom()
	}
	return nil
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
		v.idle.push(c, end, false)
	}
	v.mu.Unlock()
	if cut {
		end()
	}
}

// pause notes that c is between two requests, and can be spared.
func (v *visitors) pause(c *visitor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.push(c, c.cut, true)
}

// forget notes that c has gone: what it is said to do after that counts no more.
func (v *visitors) forget(c *visitor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.remove(c)
	c.gone = true
}

// work notes that c has a request or stream under way.
func (v *visitors) work(c *visitor) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.remove(c)
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
	idle := v.idle.take()
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
// request until its header is whole, nothing is asked for yet.
func (e *Edge) follow(conn net.Conn, state http.ConnState) {
	v := visitorOf(conn)
	if v == nil {
		return
	}
	switch state {
	case http.StateActive:
		e.visits.rest(v, v.cut)
	case http.StateIdle:
		e.visits.pause(v)
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

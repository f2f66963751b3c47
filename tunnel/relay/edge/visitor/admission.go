// Package visitor deals with those who connect to the edge. A Conn is a visitor's connection,
// with the visitor's own address even behind a load balancer. The Admission counts connections
// and requests by address, turns away those over a limit, and knows which connections are idle
// and can make room. What visitors ask for is handled elsewhere.
package visitor

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/internal/netblock"
)

// arriving is how long a request may be on its way when the edge begins to end.
const arriving = 250 * time.Millisecond

// Admission lets visitors in: it finds whose a connection is, counts those that are
// open, by address and together, and knows those that can be spared, which ask for
// nothing now.
type Admission struct {
	cfg Config

	turnedAway atomic.Uint64
	told       atomic.Int64 // when the log may be told of it again, by monotime.Now
	toldSpared struct {     // what the log was told, by TellOfSpared alone
		n     uint64
		again time.Duration
	}
	crowds crowds

	mu       sync.Mutex
	open     map[netip.Prefix]int
	all      int
	empty    chan struct{} // closed when all is 0 again; nil unless waited for
	idle     queue
	spared   uint64 // that made room
	draining bool   // no more are let in
	cut      bool   // nor may one that is open ask for nothing
}

// Config is what an admission goes by.
type Config struct {
	PerAddress int // connections of one address
	Most       int // of all
	// HeaderTime is how long a PROXY header may take.
	HeaderTime time.Duration
	// Balancers are trusted: their PROXY protocol and X-Forwarded headers count.
	Balancers []netip.Prefix
	// Proxy says whether connections of load balancers begin with a PROXY header.
	Proxy ProxyHeader
	// Refuse answers a request that is one too many of its address.
	Refuse func(http.ResponseWriter, *http.Request)
	Log    *slog.Logger
}

// New returns an admission that has let nobody in.
func New(cfg Config) *Admission { return &Admission{cfg: cfg} }

// Trusted reports whether an address is a load balancer's.
func (v *Admission) Trusted(a netip.Addr) bool {
	for _, p := range v.cfg.Balancers {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// tellEvery is how often the log is told of connections that are turned away.
const tellEvery = time.Minute

// turnAway counts a connection that is not let in.
func (v *Admission) turnAway(addr netip.Addr, reason string) {
	n := v.turnedAway.Add(1)
	now, told := monotime.Now(), v.told.Load()
	if int64(now) >= told && v.told.CompareAndSwap(told, int64(now+tellEvery)) {
		v.cfg.Log.Warn("connections are turned away", "address", addr, "reason", reason, "since_start", n)
	}
}

// TellOfSpared tells the log that connections have made room, at most as often as it
// is told of those that are turned away. One goroutine calls it, now and again.
func (v *Admission) TellOfSpared() {
	c := v.Figures()
	now := monotime.Now()
	if t := &v.toldSpared; c.Spared > t.n && now >= t.again {
		t.n, t.again = c.Spared, now+tellEvery
		v.cfg.Log.Warn("as many connections are open as may be, and some that asked for nothing made room for others", "connections", c.Open, "since_start", c.Spared)
	}
}

// Figures are of all visitors since the start.
type Figures struct {
	Open       int    // connections that are open now
	TurnedAway uint64 // connections and requests over a limit, or with a bad PROXY header
	Spared     uint64 // connections that asked for nothing and made room for others
}

// Figures returns a snapshot.
func (v *Admission) Figures() Figures {
	v.mu.Lock()
	defer v.mu.Unlock()
	return Figures{Open: v.all, TurnedAway: v.turnedAway.Load(), Spared: v.spared}
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
func (v *Admission) enter(a netip.Addr, balancer bool, newcomer *Resting) error {
	from := netblock.Of(a)
	v.mu.Lock()
	if v.draining || v.open[from] >= v.cfg.PerAddress && !balancer {
		v.mu.Unlock()
		return errTurnedAway
	}
	var makeRoom func()
	if v.all >= v.cfg.Most {
		spared := v.idle.first
		if spared != nil && spared == newcomer {
			spared = newcomer.after
		}
		// Who makes room is counted until it has gone.
		if spared == nil || v.all >= v.cfg.Most+v.cfg.Most/8 {
			v.mu.Unlock()
			return errFull
		}
		makeRoom = spared.end
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

func (v *Admission) leave(a netip.Addr) {
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

// Rest notes that c asks for nothing now; end ends it, at once if such
// connections were ended before. It must not wait.
func (v *Admission) Rest(c *Resting, end func()) {
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
func (v *Admission) pause(c *Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.push(&c.Resting, c.cut, true)
}

// Forget notes that c has gone: what it is said to do after that counts no more.
func (v *Admission) Forget(c *Resting) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.remove(c)
	c.gone = true
}

// Work notes that c has a request or stream under way.
func (v *Admission) Work(c *Resting) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.remove(c)
}

// Drain lets no more connections in, and after arriving ends those that ask for
// nothing: the request of one of them may be on its way.
func (v *Admission) Drain(ctx context.Context) {
	v.mu.Lock()
	v.draining = true
	v.mu.Unlock()
	short, cancel := context.WithTimeout(ctx, arriving)
	defer cancel()
	v.Wait(short)
	v.mu.Lock()
	v.cut = true
	idle := v.idle.take()
	v.mu.Unlock()
	for _, end := range idle {
		end()
	}
}

// Wait returns when no connection is open or ctx ends.
func (v *Admission) Wait(ctx context.Context) {
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

// NewContext puts the connection that requests come on into their context.
func NewContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, connOf(conn))
}

// FromContext is the visitor whose connection a request came on; nil: it is none.
func FromContext(ctx context.Context) *Conn {
	v, _ := ctx.Value(visitorKey{}).(*Conn)
	return v
}

// connOf is the visitor underneath a connection of an http.Server.
func connOf(conn net.Conn) *Conn {
	switch c := conn.(type) {
	case *Conn:
		return c
	case *tls.Conn:
		return connOf(c.NetConn())
	case *halfOpen:
		return connOf(c.Conn)
	case secureHalfOpen:
		return connOf(c.Conn)
	}
	return nil
}

// headOf is the connection of an http.Server that reads heads of HTTP/1; nil for others.
func headOf(conn net.Conn) *halfOpen {
	switch c := conn.(type) {
	case *halfOpen:
		return c
	case secureHalfOpen:
		return c.halfOpen
	}
	return nil
}

// Follow is the http.Server's word on a connection. From the first byte of a
// request until its header is whole, nothing is asked for yet.
func (v *Admission) Follow(conn net.Conn, state http.ConnState) {
	c := connOf(conn)
	if c == nil {
		return
	}
	if h := headOf(conn); h != nil && (state == http.StateActive || state == http.StateIdle) {
		h.head(state == http.StateActive) // by HTTP/1 it is told so behind the head
	}
	switch state {
	case http.StateActive:
		v.Rest(&c.Resting, c.cut)
	case http.StateIdle:
		v.pause(c)
		v.crowds.rest(&c.streams, false)
	case http.StateClosed:
		v.crowds.rest(&c.streams, true)
	}
}

// Working notes that a request is whole.
func (v *Admission) Working(ctx context.Context) {
	if c := FromContext(ctx); c != nil {
		v.Work(&c.Resting)
	}
}

// Count counts a connection that is none of TCP, from an address; leave counts it out.
func (v *Admission) Count(a netip.Addr) (leave func(), err error) {
	if err := v.enter(a, v.Trusted(a), nil); err != nil {
		v.turnAway(a, err.Error())
		return nil, err
	}
	return func() { v.leave(a) }, nil
}

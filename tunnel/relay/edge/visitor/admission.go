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

// arriving is how long a request may be in transit when the edge begins to shut down.
const arriving = 250 * time.Millisecond

// Admission admits visitors. It determines a connection's visitor, counts open connections by
// address and in total, and knows which ones are idle and can be spared.
type Admission struct {
	cfg Config

	turnedAway atomic.Uint64
	told       atomic.Int64 // when the log may next mention it, by monotime.Now
	toldSpared struct {     // what the log was last told; used only by TellOfSpared
		n     uint64
		again time.Duration
	}
	crowds crowds

	mu       sync.Mutex
	open     map[netip.Prefix]int
	all      int
	empty    chan struct{} // closed when no connection is left; nil unless somebody waits
	idle     queue
	spared   uint64 // closed to make room
	draining bool   // no more connections are admitted
	cut      bool   // idle connections are ended as well
}

// Config configures an Admission.
type Config struct {
	PerAddress int // connections of one address
	Most       int // of all
	// HeaderTime limits how long a PROXY header may take.
	HeaderTime time.Duration
	// Balancers are the trusted load balancers: their PROXY protocol and X-Forwarded headers
	// are believed.
	Balancers []netip.Prefix
	// Proxy says whether load balancers begin their connections with a PROXY header.
	Proxy ProxyHeader
	// Refuse answers a request that exceeds the limit of its address.
	Refuse func(http.ResponseWriter, *http.Request)
	Log    *slog.Logger
}

// New returns an Admission without any visitors.
func New(cfg Config) *Admission { return &Admission{cfg: cfg} }

// Trusted reports whether an address belongs to a load balancer.
func (v *Admission) Trusted(a netip.Addr) bool {
	for _, p := range v.cfg.Balancers {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// tellEvery is how often the log mentions connections that were turned away.
const tellEvery = time.Minute

// turnAway counts a connection that is not admitted.
func (v *Admission) turnAway(addr netip.Addr, reason string) {
	n := v.turnedAway.Add(1)
	now, told := monotime.Now(), v.told.Load()
	if int64(now) >= told && v.told.CompareAndSwap(told, int64(now+tellEvery)) {
		v.cfg.Log.Warn("connections are turned away", "address", addr, "reason", reason, "since_start", n)
	}
}

// TellOfSpared logs that connections were closed to make room, at most once every tellEvery.
// It is called regularly, by one goroutine.
func (v *Admission) TellOfSpared() {
	c := v.Figures()
	now := monotime.Now()
	if t := &v.toldSpared; c.Spared > t.n && now >= t.again {
		t.n, t.again = c.Spared, now+tellEvery
		v.cfg.Log.Warn("as many connections are open as may be, and some that asked for nothing made room for others", "connections", c.Open, "since_start", c.Spared)
	}
}

// Figures describe all visitors since the start.
type Figures struct {
	Open       int    // currently open
	TurnedAway uint64 // connections and requests over a limit, or with a bad PROXY header
	Spared     uint64 // idle connections that were closed to make room for others
}

// Figures returns a snapshot.
func (v *Admission) Figures() Figures {
	v.mu.Lock()
	defer v.mu.Unlock()
	return Figures{Open: v.all, TurnedAway: v.turnedAway.Load(), Spared: v.spared}
}

// Reasons for turning a connection away.
var (
	errTurnedAway = errors.New("too many connections of this address")
	errFull       = errors.New("too many connections of all visitors")
)

// enter counts a new connection, unless its address or all visitors together have too many. A
// load balancer's connections come from many visitors and count only towards the total. If the
// total is reached, the connection that has been idle longest makes room, unless that is the
// newcomer, which may be nil.
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
		// The spared connection still counts until it has gone.
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

// Rest notes that c is idle. end closes it, and is called at once if idle connections have
// already been ended. end must not block.
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

// pause notes that c is between two requests and can be spared.
func (v *Admission) pause(c *Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.push(&c.Resting, c.cut, true)
}

// Forget notes that c has gone; later calls for c have no effect.
func (v *Admission) Forget(c *Resting) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.remove(c)
	c.gone = true
}

// Work notes that c has a request or stream in progress.
func (v *Admission) Work(c *Resting) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle.remove(c)
}

// Drain admits no more connections. After arriving, which allows for requests in transit, it
// ends those that are idle.
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

// Wait waits until no connection is open, or ctx ends.
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

// NewContext returns a context for the requests on a connection, from which FromContext gets
// the visitor.
func NewContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, connOf(conn))
}

// FromContext returns the visitor whose connection a request came on, or nil.
func FromContext(ctx context.Context) *Conn {
	v, _ := ctx.Value(visitorKey{}).(*Conn)
	return v
}

// connOf returns the visitor underneath a connection of an http.Server.
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

// headOf returns the halfOpen in a connection of an http.Server that reads HTTP/1 heads; nil
// for other connections.
func headOf(conn net.Conn) *halfOpen {
	switch c := conn.(type) {
	case *halfOpen:
		return c
	case secureHalfOpen:
		return c.halfOpen
	}
	return nil
}

// Follow is called by http.Server when a connection changes state. Between the first byte of a
// request and the end of its header, the connection still counts as idle.
func (v *Admission) Follow(conn net.Conn, state http.ConnState) {
	c := connOf(conn)
	if c == nil {
		return
	}
	if h := headOf(conn); h != nil && (state == http.StateActive || state == http.StateIdle) {
		h.head(state == http.StateActive) // for HTTP/1, this state follows the head
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

// Working notes that a request's header is complete.
func (v *Admission) Working(ctx context.Context) {
	if c := FromContext(ctx); c != nil {
		v.Work(&c.Resting)
	}
}

// Count counts a connection that does not use TCP, from an address. leave must be called when
// it ends.
func (v *Admission) Count(a netip.Addr) (leave func(), err error) {
	if err := v.enter(a, v.Trusted(a), nil); err != nil {
		v.turnAway(a, err.Error())
		return nil, err
	}
	return func() { v.leave(a) }, nil
}

package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pion/dtls/v3"

	"adit/internal/crowd"
	"adit/internal/netblock"
	"adit/internal/udpbatch"
)

// repeatFor is how long a server may have to repeat its last flight if the client sends nothing
// that shows that it arrived.
const repeatFor = time.Minute

// acceptBacklog is how many sessions may wait for Accept.
const acceptBacklog = 256

// handshakeGrace is how long a handshake keeps its place if others of equally many addresses want
// one. It is as long as a client's first attempts: after that, there may be nobody at the other
// end.
const handshakeGrace = 6 * time.Second

// readPause is how long a listener waits after failed reads of its socket.
const readPause = 100 * time.Millisecond

// Listener accepts sessions on one socket. It does nothing unless Serve is running.
type Listener struct {
	cfg      Config
	sock     *socket
	cookies  *cookies
	accepted chan *Conn
	done     chan struct{}
	closing  sync.Once
	workers  sync.WaitGroup

	// Used by the goroutine in Serve: where the last datagram went.
	lastKey  [cidSize]byte
	lastConn *Conn
	lastGen  uint64

	changes atomic.Uint64 // counts changes of the tables

	handshakes crowd.Crowd // under way
	farewells  farewells
	beginning  gate // before them

	mu      sync.RWMutex
	byCID   map[[cidSize]byte]*Conn
	byAddr  map[netip.AddrPort]*Conn
	carried map[*socket]struct{} // the detours
	closed  bool
}

// Listen returns a Listener on pc and takes ownership of pc.
func Listen(pc net.PacketConn, cfg Config) (*Listener, error) {
	cfg, err := cfg.filled(true)
	if err != nil {
		_ = pc.Close()
		return nil, fmt.Errorf("dtls listener: %w", err)
	}
	return &Listener{
		cfg: cfg, sock: &socket{conn: udpbatch.New(pc, cfg.batchOptions())},
		cookies: newCookies(), accepted: make(chan *Conn, acceptBacklog), done: make(chan struct{}),
		handshakes: crowd.Crowd{PerBlock: cfg.MaxHandshakesPerAddress, Most: cfg.MaxHandshakes, Grace: handshakeGrace},
		beginning:  newGate(),
		byCID:      map[[cidSize]byte]*Conn{}, byAddr: map[netip.AddrPort]*Conn{},
		carried: map[*socket]struct{}{},
	}, nil
}

// Addr returns the socket's address.
func (l *Listener) Addr() net.Addr { return l.sock.conn.LocalAddr() }

// Serve reads the socket and makes handshakes until ctx ends or the Listener is closed; its
// sessions end with it.
func (l *Listener) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.shut() })
	l.workers.Go(func() { l.sayFarewells(ctx) })
	err := l.sock.read(func(in *inbound) { l.sort(ctx, in) })
	for warned := (time.Time{}); err != nil && l.rideOut(err); {
		if time.Since(warned) > time.Minute {
			warned = time.Now()
			l.cfg.Logger.Warn("the socket of the sessions over DTLS could not be read for a moment", "address", l.Addr(), "error", err)
		}
		err = l.sock.read(func(in *inbound) { l.sort(ctx, in) })
	}
	cancel()
	stop()
	l.shut()
	l.workers.Wait()
	return err
}

// rideOut waits a moment after a failed read, and reports whether another may succeed: the system's
// errors, such as lack of memory, are temporary.
func (l *Listener) rideOut(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	pause := time.NewTimer(readPause)
	defer pause.Stop()
	select {
	case <-l.done:
	case <-pause.C:
	}
	return true // once it is closed, a read says so
}

// Accept waits for the next session whose handshake is complete.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	default:
	}
	select {
	case c := <-l.accepted:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.done:
		return nil, fmt.Errorf("accept on %v: %w", l.Addr(), net.ErrClosed)
	}
}

// Close ends the Listener and its sessions, telling their peers. Serve then returns.
func (l *Listener) Close() error {
	l.shut()
	return nil
}

func (l *Listener) shut() {
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed = true
		conns := make(map[*Conn]struct{}, len(l.byAddr))
		for _, c := range l.byCID {
			conns[c] = struct{}{}
		}
		for _, c := range l.byAddr {
			conns[c] = struct{}{}
		}
		carried := slices.Collect(maps.Keys(l.carried))
		l.mu.Unlock()
		close(l.done)
		for c := range conns {
			_ = c.Close()
		}
		for _, s := range carried {
			_ = s.conn.Close()
		}
		_ = l.sock.conn.Close()
	})
}

// Sessions returns how many sessions there are, including those still in their handshake.
func (l *Listener) Sessions() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return max(len(l.byCID), len(l.byAddr))
}

// Cut returns how many handshakes lost their places to others.
func (l *Listener) Cut() uint64 { return l.handshakes.Cut() }

// sort passes a buffer to its session. All datagrams in a buffer are from one sender and nearly
// always of one session, in which case the buffer is passed as a whole.
func (l *Listener) sort(ctx context.Context, in *inbound) {
	if l.foreign(in, func(one *inbound) { l.sort(ctx, one) }) {
		return
	}
	if len(in.data) > in.seg && !uniform(in.data, in.seg) {
		for len(in.data) > 0 {
			l.sort(ctx, in.copyOf(in.next()))
		}
		in.release()
		return
	}
	p := in.data[:min(in.seg, len(in.data))]
	if len(p) < headerSize {
		in.release()
		return
	}
	var c *Conn
	switch {
	case p[0] == typeCID:
		c = l.routeCID(p)
	case p[0] == typeHandshake && len(p) > headerSize && p[headerSize] == clientHello && p[3]|p[4] == 0:
		l.hello(ctx, p, in.from)
	default:
		l.mu.RLock()
		c = l.byAddr[in.from.AddrPort]
		l.mu.RUnlock()
	}
	if c == nil {
		l.answerFarewell(p, &path{l.sock, in.from})
		in.release()
		return
	}
	c.deliver(in)
}

// uniform reports whether all datagrams in a buffer have the same destination as the first: the
// same Connection ID, or none and no handshake.
func uniform(data []byte, seg int) bool {
	first := data[:seg]
	for rest := data[seg:]; len(rest) > 0; rest = rest[min(seg, len(rest)):] {
		if rest[0] != first[0] || first[0] == typeHandshake {
			return false
		}
		if first[0] == typeCID {
			if len(first) < 11+cidSize || len(rest) < 11+cidSize ||
				[cidSize]byte(rest[11:]) != [cidSize]byte(first[11:]) {
				return false
			}
		}
	}
	return true
}

func (l *Listener) routeCID(p []byte) *Conn {
	if len(p) < headerSize+cidSize {
		return nil
	}
	key := [cidSize]byte(p[11:])
	gen := l.changes.Load()
	if l.lastConn != nil && l.lastGen == gen && l.lastKey == key {
		return l.lastConn
	}
	l.mu.RLock()
	c := l.byCID[key]
	l.mu.RUnlock()
	l.lastKey, l.lastConn, l.lastGen = key, c, gen
	return c
}

// hello answers a ClientHello. Until a cookie has come back, it spends nothing on it but a
// HelloVerifyRequest.
func (l *Listener) hello(ctx context.Context, p []byte, from udpbatch.Addr) {
	h, ok := parseHello(p)
	if !ok {
		return
	}
	now := time.Now()
	if h.message != 1 || h.seq == 0 || !l.cookies.valid(h, from.AddrPort, now) {
		_ = l.sock.conn.WriteBatch([][]byte{l.cookies.request(h, from.AddrPort, now)}, from)
		return
	}
	if f, under := l.underWay(h, from); under {
		if f != nil {
			f.push(p) // repeated: its answer was lost
		}
		return
	}
	begun, ok := l.beginning.enter()
	if !ok {
		return
	}
	hctx, cancel := context.WithTimeout(ctx, l.cfg.HandshakeTimeout)
	leave, ok := l.handshakes.Enter(netblock.Of(from.AddrPort.Addr()), cancel)
	c, f := (*Conn)(nil), (*feed)(nil)
	if ok {
		c, f = l.admit(h, from)
	}
	if c == nil {
		begun()
		leave()
		cancel()
		return
	}
	g := greeting{
		first: h.withoutCookie(p), second: append([]byte(nil), p[:h.size]...),
		cookie: append([]byte(nil), h.cookie...), seq: h.seq, answered: begun,
	}
	l.workers.Go(func() {
		defer cancel()
		l.serve(hctx, c, f, g, leave)
	})
}

// underWay reports whether a ClientHello belongs to a handshake that has begun, and returns its
// feed; nil if the handshake no longer needs one.
func (l *Listener) underWay(h hello, from udpbatch.Addr) (*feed, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if c := l.byAddr[from.AddrPort]; c != nil && c.random == [32]byte(h.random) {
		return c.feed.Load(), true
	}
	return nil, false
}

// admit begins a handshake that has a place. It returns a new Conn and its feed, or neither if
// there are too many sessions.
func (l *Listener) admit(h hello, from udpbatch.Addr) (*Conn, *feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.byAddr)+l.handshakes.Len() > l.cfg.MaxSessions || len(l.byCID) >= l.cfg.MaxSessions {
		return nil, nil
	}
	c := newConn(l.cfg, false, l.sock, from)
	c.listener = l
	c.random, c.firstAddr = [32]byte(h.random), from.AddrPort
	f := newFeed(c, l.sock.conn.LocalAddr(), from.NetAddr())
	c.feed.Store(f)
	// A previous session at this address remains reachable by its Connection ID; one without is
	// replaced only when this handshake is complete (RFC 6347 §4.2.8).
	c.before = l.byAddr[from.AddrPort]
	c.dropEnded()
	l.byAddr[from.AddrPort] = c
	l.changes.Add(1)
	return c, f
}

// greeting is the ClientHello with which a handshake begins. pion checks cookies of its own, so it
// is shown the ClientHello as if a client had sent it twice.
type greeting struct {
	first  []byte // without the cookie
	second []byte // with it, as it came
	cookie []byte
	seq    uint64 // the record number that it came under

	answered func() // to be called once it is, or will not be
}

// serve performs one handshake, and then stays for as long as the client may need its last flight
// repeated. leave gives back the handshake's place.
func (l *Listener) serve(ctx context.Context, c *Conn, f *feed, g greeting, leave func()) {
	pion, err := l.handshake(ctx, c, f, g)
	g.answered()
	leave()
	if pion != nil {
		defer func() { f.shut(); _ = pion.Close() }()
	}
	if err != nil {
		l.cfg.Logger.Debug("dtls handshake ended", "peer", f.remote, "error", err)
		l.failed(c, fmt.Errorf("dtls handshake with %v: %w", f.remote, err))
		return
	}
	l.replaced(c)
	l.keepFarewell(c)
	select {
	case l.accepted <- c:
	default:
		l.cfg.Logger.Warn("dtls session dropped: nobody accepts it", "peer", f.remote)
		_ = c.Close()
		return
	}
	timer := time.NewTimer(repeatFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.done:
	case <-c.done:
	}
	c.feed.CompareAndSwap(f, nil)
	l.settled(c)
}

func (l *Listener) handshake(ctx context.Context, c *Conn, f *feed, g greeting) (*dtls.Conn, error) {
	opts := l.cfg.options(func() []byte { return l.name(c) }, f.refuse)
	serverOpts := make([]dtls.ServerOption, 0, len(opts)+1)
	for _, o := range opts {
		serverOpts = append(serverOpts, o)
	}
	if l.cfg.RequireClientCert {
		serverOpts = append(serverOpts, dtls.WithClientAuth(dtls.RequireAnyClientCert))
	}
	pion, err := dtls.ServerWithOptions(f, f.remote, serverOpts...)
	if err != nil {
		return nil, err
	}
	var adopted bool
	f.intercept = func(p []byte) bool {
		if len(p) > headerSize && p[0] == typeHandshake && p[headerSize] == helloVerifyRequest {
			if !adopted {
				adopted = adoptCookie(pion, g.cookie) == nil
				f.push(g.second)
			}
			return false // the client has one
		}
		// pion's HelloVerifyRequest was record 0, and the ServerHello follows it; on the wire, the
		// ServerHello has the number of the ClientHello.
		shiftNumbers(p, g.seq-1)
		g.answered()
		return true
	}
	f.push(g.first)
	if err := c.handshake(ctx, pion, f); err != nil {
		return pion, err
	}
	return pion, nil
}

// name assigns a session the Connection ID that its client's records will carry.
func (l *Listener) name(c *Conn) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		cid := newCID()
		key := [cidSize]byte(cid)
		if l.byCID[key] != nil {
			continue
		}
		if l.byCID[c.routeKey] == c { // a repeated flight names it again
			delete(l.byCID, c.routeKey)
		}
		c.routeKey = key
		l.byCID[key] = c
		l.changes.Add(1)
		return cid
	}
}

// settled frees the address of a session that is known by its Connection ID.
func (l *Listener) settled(c *Conn) {
	if len(c.localCID) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropAddr(c)
}

// addressed reports whether a session whose handshake is complete is known only by its address.
func (c *Conn) addressed() bool { return c.ready.Load() && len(c.localCID) == 0 }

// dropEnded forgets earlier sessions at c's address that no longer need it. The listener's mu is
// held.
func (c *Conn) dropEnded() {
	for p := c; p.before != nil; {
		if b := p.before; b.Err() != nil || b.ready.Load() && !b.addressed() {
			p.before = b.before
		} else {
			p = b
		}
	}
}

// replaced ends the sessions that had nothing but the address that is now c's.
func (l *Listener) replaced(c *Conn) {
	var ended []*Conn
	l.mu.Lock()
	for b := c.before; b != nil; b = b.before {
		if b.addressed() {
			ended = append(ended, b)
		}
	}
	c.before = nil
	l.mu.Unlock()
	for _, b := range ended {
		b.finish(errClosed)
	}
}

// failed ends a handshake. Its address belongs to the previous one again, which may be a session or
// still be in its handshake.
func (l *Listener) failed(c *Conn, err error) {
	c.finish(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.dropEnded(); c.before != nil && l.byAddr[c.firstAddr] == nil && !l.closed {
		l.byAddr[c.firstAddr] = c.before
		l.changes.Add(1)
	}
}

// forget removes an ended session from the tables.
func (l *Listener) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byCID[c.routeKey] == c {
		delete(l.byCID, c.routeKey)
		l.endFarewell(c)
	}
	l.dropAddr(c)
	l.changes.Add(1)
}

func (l *Listener) dropAddr(c *Conn) {
	if l.byAddr[c.firstAddr] == c {
		delete(l.byAddr, c.firstAddr)
	}
}

// Package udpflow gives every sender of packets to a UDP socket its own way, on which its packets
// go out and the answers come back. Where a way leads, and how, is left to the caller.
package udpflow

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/internal/udpbatch"
)

const (
	// batch is how many packets are read at once.
	batch = 16
	// maxQueued and maxQueuedBytes bound what is kept of a sender until its way is open.
	maxQueued      = 16
	maxQueuedBytes = 128 << 10
	// socketBuffer holds a burst of packets while there is no turn to read them.
	socketBuffer = 1 << 20
	// readAgain is how long after an error the socket is read again.
	readAgain = 10 * time.Millisecond
	// silent is how long a sender has to be silent to make room for another: who sends
	// from ever more addresses has ways opened no faster than that.
	silent = time.Second
)

// ErrOver is the error of a way that ended right away without bringing anything.
var ErrOver = errors.New("it ended as soon as it began: the service behind the tunnel may be down; its owner can check adit's log")

// Way is where a sender's packets go.
type Way interface {
	// Send sends packets on, as far as there is room, and does not block: losses are normal for
	// UDP. The packets may be reused when it returns. It must not be called concurrently.
	Send(payloads [][]byte)
	// Run delivers answers until the way ends or ctx ends, and closes the way. It is called once.
	Run(ctx context.Context)
}

// Config says how to serve a socket. Open is required.
type Config struct {
	// Open opens a way for a sender. answer receives what comes back and is not called
	// concurrently; the payloads are valid until it returns, and it may change the list.
	Open func(ctx context.Context, answer func(payloads [][]byte)) (Way, error)
	// Most is how many senders there may be. One more takes the place of the sender that has been
	// silent for longest, at least for a second, or else is ignored. If zero, 256.
	Most int
	// Enter is called for each sender, and Leave at its end.
	Enter, Leave func()
	// Passed counts payload, in bytes; in says that it came from a sender.
	Passed func(in, out int)
	// Opened and Failed report the result of an Open. A way counts as open once it has delivered an
	// answer, or has existed for as long as Pause; if it ends before that, it has failed.
	Opened func()
	Failed func(error)
	// Idle is how long a sender may go without sending or being answered. If zero, 90 seconds.
	Idle time.Duration
	// Pause is how long a sender whose way could not be opened waits before another try; what it
	// sends in the meantime is dropped. If the way ended right away, tries are also at least Pause
	// apart. If zero, one second.
	Pause time.Duration
}

func (c Config) withDefaults() Config {
	if c.Most == 0 {
		c.Most = 256
	}
	if c.Enter == nil {
		c.Enter = func() {}
	}
	if c.Leave == nil {
		c.Leave = func() {}
	}
	if c.Passed == nil {
		c.Passed = func(int, int) {}
	}
	if c.Opened == nil {
		c.Opened = func() {}
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	if c.Idle == 0 {
		c.Idle = 90 * time.Second
	}
	if c.Pause == 0 {
		c.Pause = time.Second
	}
	return c
}

// senders are those of one socket.
type senders struct {
	cfg  Config
	conn *udpbatch.Conn
	wg   sync.WaitGroup

	mu  sync.Mutex
	all map[netip.AddrPort]*sender
}

// Serve serves a socket until ctx ends or the socket is closed, and closes it. It returns nil if
// ctx has ended it.
func Serve(ctx context.Context, conn *net.UDPConn, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	ss := &senders{
		cfg: cfg.withDefaults(), all: make(map[netip.AddrPort]*sender),
		conn: udpbatch.New(conn, udpbatch.Options{NoGRO: true, Fragment: true, NeverWait: true, SocketBuffer: socketBuffer}),
	}
	defer ss.wg.Wait()
	defer cancel()
	defer ss.conn.Close()
	defer context.AfterFunc(ctx, func() { ss.conn.Close() })()
	packets := make([]udpbatch.Buffer, min(batch, ss.conn.Batch()))
	for i := range packets {
		packets[i].B = make([]byte, 64<<10)
	}
	payloads := make([][]byte, 0, len(packets))
	for {
		n, err := ss.conn.ReadBatch(packets)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // ICMP errors of earlier packets, on some systems
			select {
			case <-ctx.Done():
			case <-time.After(readAgain):
			}
			continue
		}
		udpbatch.Passed(n)
		// Packets of one sender that follow each other go together.
		for i := 0; i < n; {
			from := packets[i].Addr
			payloads = payloads[:0]
			for ; i < n && packets[i].Addr.AddrPort == from.AddrPort; i++ {
				payloads = append(payloads, packets[i].B[:packets[i].N])
			}
			ss.take(ctx, from, payloads)
		}
	}
}

// take takes packets of one sender.
func (ss *senders) take(ctx context.Context, from udpbatch.Addr, payloads [][]byte) {
	ss.mu.Lock()
	s := ss.all[from.AddrPort]
	ss.mu.Unlock()
	if s == nil {
		if s = ss.begin(ctx, from); s == nil {
			return
		}
	}
	s.used.Store(int64(monotime.Now()))
	if way := s.wayOf(payloads); way != nil {
		s.send(way, payloads)
	}
}

// begin takes one more sender in; nil: there is no room.
func (ss *senders) begin(ctx context.Context, from udpbatch.Addr) *sender {
	ctx, end := context.WithCancel(ctx)
	s := &sender{of: ss, at: from, end: end}
	s.used.Store(int64(monotime.Now()))
	ss.mu.Lock()
	spared, room := ss.makeRoom()
	if room {
		ss.all[from.AddrPort] = s
	}
	ss.mu.Unlock()
	if spared != nil {
		spared.end()
	}
	if !room {
		end()
		return nil
	}
	ss.cfg.Enter()
	ss.wg.Go(func() {
		defer ss.cfg.Leave()
		defer end()
		defer s.forget()
		s.run(ctx)
	})
	return s
}

// makeRoom reports whether there is room for one more sender, and forgets the one that has
// to go for that, which is to be ended; nil: none has. mu is held.
func (ss *senders) makeRoom() (spared *sender, room bool) {
	if len(ss.all) < ss.cfg.Most {
		return nil, true
	}
	for _, s := range ss.all {
		if spared == nil || s.used.Load() < spared.used.Load() {
			spared = s
		}
	}
	if monotime.Now()-time.Duration(spared.used.Load()) < silent {
		return nil, false
	}
	delete(ss.all, spared.at.AddrPort)
	return spared, true
}

// sender is one address that packets come from.
type sender struct {
	of   *senders
	at   udpbatch.Addr
	end  context.CancelFunc
	used atomic.Int64 // when a packet passed last, by monotime.Now
	told atomic.Bool  // what came of its Open

	mu     sync.Mutex
	way    Way // nil until what was queued has gone
	failed bool
	queued [][]byte
	size   int // of queued
}

// wayOf is the sender's way; if that is not open yet the packets are kept, and it is nil.
func (s *sender) wayOf(payloads [][]byte) Way {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.way != nil || s.failed {
		return s.way
	}
	for _, payload := range payloads {
		if len(s.queued) < maxQueued && s.size+len(payload) <= maxQueuedBytes {
			s.queued = append(s.queued, append([]byte(nil), payload...))
			s.size += len(payload)
		}
	}
	return nil
}

func (s *sender) send(way Way, payloads [][]byte) {
	for _, payload := range payloads {
		s.of.cfg.Passed(len(payload), 0)
	}
	way.Send(payloads)
}

// answer brings packets to the sender.
func (s *sender) answer(payloads [][]byte) {
	s.opened()
	s.used.Store(int64(monotime.Now()))
	for _, payload := range payloads {
		s.of.cfg.Passed(0, len(payload))
	}
	udpbatch.Passed(len(payloads))
	_ = s.of.conn.WriteBatch(payloads, s.at) // a lost packet is UDP's own
}

// run opens the sender's way, and returns when that is over and another may be opened.
func (s *sender) run(ctx context.Context) {
	cfg := &s.of.cfg
	begun := monotime.Now()
	way, err := cfg.Open(ctx, s.answer)
	switch {
	case err == nil:
		s.flush(way)
		if s.rests(ctx, way) {
			return
		}
		if ctx.Err() == nil && !s.told.Swap(true) {
			cfg.Failed(ErrOver)
		}
	case ctx.Err() == nil:
		cfg.Failed(err)
		begun = monotime.Now()
	}
	s.fail()
	select {
	case <-ctx.Done():
	case <-time.After(begun + cfg.Pause - monotime.Now()):
	}
}

// opened tells once that the sender's way is open.
func (s *sender) opened() {
	if !s.told.Load() && !s.told.Swap(true) {
		s.of.cfg.Opened()
	}
}

// rests runs the sender's way, and reports whether that is over because nothing has passed
// for the idle time.
func (s *sender) rests(ctx context.Context, way Way) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := false
	var watching sync.WaitGroup
	watching.Go(func() {
		if idle = s.rest(ctx); idle {
			s.forget() // what comes from now on is not for a way that ends
			cancel()
		}
	})
	way.Run(ctx)
	cancel()
	watching.Wait()
	return idle
}

// rest returns when nothing has passed for the idle time, which it reports, or ctx ends.
func (s *sender) rest(ctx context.Context) (idle bool) {
	for wait := s.of.cfg.Pause; ; {
		left := time.Duration(s.used.Load()) + s.of.cfg.Idle - monotime.Now()
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(min(left, wait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
		s.opened()
		wait = s.of.cfg.Idle
	}
}

// flush sends what has waited for the way, which is the sender's from then on.
func (s *sender) flush(way Way) {
	for {
		s.mu.Lock()
		queued := s.queued
		s.queued, s.size = nil, 0
		if len(queued) == 0 {
			s.way = way
		}
		s.mu.Unlock()
		if len(queued) == 0 {
			return
		}
		s.send(way, queued)
	}
}

func (s *sender) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.way, s.failed, s.queued, s.size = nil, true, nil, 0
}

func (s *sender) forget() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.all[s.at.AddrPort] == s { // and not one that came after it
		delete(s.of.all, s.at.AddrPort)
	}
}

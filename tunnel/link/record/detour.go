package record

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"adit/internal/udpbatch"
)

// Limits for connections used as a detour. Until one of its records has been authenticated, a
// detour belongs to a stranger.
const (
	// proofTime is how long it may take until a record has been authenticated.
	proofTime = 5 * time.Second
	// strangeRecords and strangeBytes are how much is examined until then; the rest is dropped.
	strangeRecords = 256
	strangeBytes   = 512 << 10
	// maxDetours is how many detours a session may have; the newest are kept.
	maxDetours = 2
)

// errNotOurs ends a detour that brings anything other than records of one existing session.
var errNotOurs = errors.New("not a record of a session that may take a detour")

// detour is a socket that is not a UDP socket. Its fields belong to the goroutine in Carry, except
// for proven.
type detour struct {
	proven  atomic.Bool
	pc      net.PacketConn // at a client
	accept  func()         // called once, with the first authentic record
	conn    *Conn          // whose records come, once the first came
	key     [cidSize]byte
	records int // that came unproven, and their bytes
	bytes   int
	err     error
}

// Carry receives the records of one session from pc, each read of which returns one datagram, until
// pc is closed; it owns pc. pc is another path on which that session's peer may arrive, and the
// peer proves itself as on any other: by authentic records, and by answering a challenge. proven is
// called with the first such record. A peer that sends none within seconds, or sends records of no
// session or of a different one, is refused.
func (l *Listener) Carry(pc net.PacketConn, proven func()) error {
	s := &socket{conn: udpbatch.New(pc, udpbatch.Options{}), detour: &detour{accept: proven}}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		_ = pc.Close()
		return fmt.Errorf("detour of %v: %w", l.Addr(), net.ErrClosed)
	}
	l.carried[s] = struct{}{}
	l.mu.Unlock()
	limit := time.AfterFunc(proofTime, func() {
		if !s.detour.proven.Load() {
			_ = s.conn.Close()
		}
	})
	err := s.read(func(in *inbound) { l.sortDetour(s, in) })
	limit.Stop()
	_ = s.conn.Close()
	l.mu.Lock()
	delete(l.carried, s)
	l.mu.Unlock()
	if s.detour.err != nil {
		return s.detour.err
	}
	return err
}

// sortDetour passes what arrived by a detour to its session.
func (l *Listener) sortDetour(s *socket, in *inbound) {
	d := s.detour
	r, _, ok := parse(in.data, cidSize)
	if !ok || r.typ != typeCID || !r.isApplication() || !l.known(d, [cidSize]byte(r.cid)) {
		if l.answerFarewell(in.data, &path{s, in.from}) {
			in.release()
			return // it reads that, and leaves
		}
		d.err = errNotOurs
		in.release()
		_ = s.conn.Close()
		return
	}
	if !d.proven.Load() {
		d.records++
		d.bytes += len(in.data)
		if d.records > strangeRecords || d.bytes > strangeBytes {
			in.release()
			return
		}
	}
	d.conn.enqueue(in)
}

// known reports whether a record's Connection ID is that of the detour's session, which the first
// record determines.
func (l *Listener) known(d *detour, key [cidSize]byte) bool {
	if d.conn != nil {
		return key == d.key
	}
	l.mu.RLock()
	c := l.byCID[key]
	l.mu.RUnlock()
	if c == nil || !c.ready.Load() {
		return false
	}
	d.conn, d.key = c, key
	return true
}

// adopt records that a detour belongs to this session: a record from it has been authenticated.
func (c *Conn) adopt(s *socket) {
	s.detour.proven.Store(true)
	var gone *socket
	c.moveMu.Lock()
	select {
	case <-c.done:
		gone = s
	default:
		if c.detours = append(c.detours, s); len(c.detours) > maxDetours {
			i := 0
			if c.detours[0] == c.at.Load().sock {
				i = 1
			}
			gone = c.detours[i]
			c.detours = slices.Delete(c.detours, i, i+1)
		}
	}
	c.moveMu.Unlock()
	if gone != nil {
		_ = gone.conn.Close()
	}
	if s.detour.accept != nil {
		s.detour.accept()
	}
}

// leaveDetour closes the detour that the session has left for another path, once what was in flight
// on it has had time to arrive.
func (c *Conn) leaveDetour(left, to *socket) {
	if left.detour == nil || left == to {
		return
	}
	c.moveMu.Lock()
	c.detours = slices.DeleteFunc(c.detours, func(s *socket) bool { return s == left })
	c.moveMu.Unlock()
	time.AfterFunc(lingerOld, func() { _ = left.conn.Close() })
}

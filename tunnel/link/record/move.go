package record

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"adit/internal/udpbatch"
)

const (
	// askFirst is the wait between a client's first two challenges; it doubles each time, and
	// beyond maxAsk no more are sent.
	askFirst = 200 * time.Millisecond
	maxAsk   = 20 * time.Second
	// maxTrials is how many sockets are tried in addition to the current one.
	maxTrials = 2
)

// pathProbe repeats a client's challenge over a socket until a record comes back. It is guarded by
// moveMu.
type pathProbe struct {
	sock  *socket
	timer *time.Timer
	wait  time.Duration
	token [8]byte
}

func newProbe(s *socket) *pathProbe {
	p := &pathProbe{sock: s, wait: askFirst}
	_, _ = rand.Read(p.token[:])
	return p
}

// stop ends the challenges, and a linger for which the timer is used.
func (p *pathProbe) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.sock = nil
}

// Rebind makes a client continue over another socket under the same Connection ID. PathChanged
// fires when the peer is first heard over it; the previous socket is closed a little later, or by
// the next Rebind. The session takes ownership of pc, even on an error.
func (c *Conn) Rebind(pc net.PacketConn) error {
	s := &socket{conn: udpbatch.New(pc, c.cfg.batchOptions())}
	c.moveMu.Lock()
	if err := c.mayMove(); err != nil {
		c.moveMu.Unlock()
		_ = pc.Close()
		return fmt.Errorf("rebind to %v: %w", pc.LocalAddr(), err)
	}
	before := c.at.Load()
	c.dropOld()
	c.old = before.sock
	c.at.Store(&path{s, before.addr})
	if c.unsure != nil {
		c.unsure.stop()
	}
	c.unsure = newProbe(s)
	probe := c.begin(c.unsure)
	c.moveMu.Unlock()
	c.ask(probe)
	return nil
}

// Try contacts the peer over another socket in addition to the current one. Once the peer is heard
// over it, the session continues there, and PathChanged fires; until then nothing else is sent over
// it. The newest two sockets are tried, for a few seconds each.
func (c *Conn) Try(pc net.PacketConn) error {
	return c.try(pc, &socket{conn: udpbatch.New(pc, c.cfg.batchOptions())})
}

// Detour is like Try with a connection that is not a UDP socket: it carries datagrams in a stream
// to the peer's Listener, which reads them with Carry. Whatever is sent to pc goes to the peer,
// regardless of the address.
func (c *Conn) Detour(pc net.PacketConn) error {
	s := &socket{conn: udpbatch.New(pc, c.cfg.batchOptions()), detour: &detour{pc: pc}}
	s.detour.proven.Store(true)
	return c.try(pc, s)
}

func (c *Conn) try(pc net.PacketConn, s *socket) error {
	c.moveMu.Lock()
	if err := c.mayMove(); err != nil {
		c.moveMu.Unlock()
		_ = pc.Close()
		return fmt.Errorf("try %v: %w", pc.LocalAddr(), err)
	}
	if len(c.trials) == maxTrials {
		_ = c.trials[0].sock.conn.Close()
		c.trials[0].stop()
		c.trials = append(c.trials[:0], c.trials[1:]...)
	}
	c.trials = append(c.trials, newProbe(s))
	probe := c.begin(c.trials[len(c.trials)-1])
	c.moveMu.Unlock()
	c.ask(probe)
	return nil
}

// Detoured reports whether the session's records take a detour now.
func (c *Conn) Detoured() bool { return c.at.Load().sock.detour != nil }

// Uses reports whether the session's records take this one.
func (c *Conn) Uses(pc net.PacketConn) bool {
	d := c.at.Load().sock.detour
	return d != nil && d.pc == pc
}

// Unproven reports whether a client uses a new socket over which the peer has not been heard yet.
func (c *Conn) Unproven() bool {
	c.moveMu.Lock()
	defer c.moveMu.Unlock()
	return c.unsure != nil
}

// mayMove returns why a client's session cannot move, or nil. The caller holds moveMu.
func (c *Conn) mayMove() error {
	if !c.isClient || !c.state.ConnectionIDs {
		return errors.New("only a client whose session has connection IDs can move")
	}
	return c.Err()
}

// begin starts reading a socket that is to be tried. The caller holds moveMu.
func (c *Conn) begin(p *pathProbe) *pathProbe {
	c.moving.Store(true)
	s := p.sock
	c.readers.Go(func() { c.readFrom(s) })
	return p
}

func (c *Conn) dropOld() {
	if c.old != nil {
		_ = c.old.conn.Close()
		c.old = nil
	}
	if c.linger != nil {
		c.linger.Stop()
	}
}

// ask sends the challenge, and repeats it until the socket is proven or given up.
func (c *Conn) ask(p *pathProbe) {
	c.moveMu.Lock()
	if p.sock == nil || c.Err() != nil || p.wait > maxAsk {
		c.moveMu.Unlock()
		return
	}
	to := path{p.sock, c.at.Load().addr}
	p.timer = time.AfterFunc(p.wait, func() { c.ask(p) })
	p.wait *= 2
	c.moveMu.Unlock()
	c.sendPath(pathChallenge, p.token[:], &to)
}

// provePath completes a Rebind or a Try: an authentic record arrived over its socket. The peer does
// not answer anybody it has not heard from, so both directions work.
func (c *Conn) provePath(in *inbound) {
	if !c.moving.Load() {
		return
	}
	c.moveMu.Lock()
	before := c.at.Load()
	proven := c.unsure != nil && in.src == before.sock
	for _, p := range c.trials {
		if p.sock == in.src {
			proven = true
			c.dropOld()
			c.old = before.sock
			c.at.Store(&path{in.src, before.addr})
		}
	}
	if !proven {
		c.moveMu.Unlock()
		return
	}
	c.stopProbes(in.src)
	c.moving.Store(false)
	if old := c.old; old != nil {
		c.linger = time.AfterFunc(lingerOld, func() { _ = old.conn.Close() })
	}
	c.moveMu.Unlock()
	c.pathMoved()
}

// stopProbes ends all challenges, and closes the sockets other than the current one and the one to
// keep. The caller holds moveMu.
func (c *Conn) stopProbes(keep *socket) {
	if c.unsure != nil {
		c.unsure.stop()
		c.unsure = nil
	}
	for _, p := range c.trials {
		if p.sock != keep {
			_ = p.sock.conn.Close()
		}
		p.stop()
	}
	c.trials = nil
}

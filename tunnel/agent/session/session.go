// Package session makes sessions with a relay, at one of several addresses, and tracks the state of
// each: whether it is alive, was heard from recently, or should be replaced by another. Which
// sessions there should be, and what is done on them, is left to package agent.
package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Session is a session after Hello. Its fields do not change.
type Session struct {
	Link    link.Session
	Control *control.Client
	Welcome wire.Welcome
	Addr    string // the relay's, as dialled
	Since   time.Time

	log     *slog.Logger
	retired chan struct{} // closed when another session has taken over
	doubt   chan struct{} // asks for a probe; room for one

	mu      sync.Mutex
	gone    bool          // retired is closed
	grace   time.Duration // how long visitors have after that; 0: as long as they take
	drain   bool          // the relay asked to move on
	suspect bool          // a probe was not answered
	dropped bool          // another node says that this one is gone
}

// Alive reports whether the session has not ended.
func (s *Session) Alive() bool {
	select {
	case <-s.Link.Done():
		return false
	default:
		return true
	}
}

// End closes the session.
func (s *Session) End(reason string) {
	_ = s.Link.Close(reason) // it is over either way
	s.Control.Close()
}

// Fresh reports whether the relay was heard within the last keep-alive interval.
func (s *Session) Fresh() bool { return s.staleIn() > 0 }

// staleIn is how long the session stays fresh if nothing is heard.
func (s *Session) staleIn() time.Duration {
	stats := s.Link.Stats()
	heard := stats.LastReceived
	if heard.IsZero() {
		heard = s.Since
	}
	interval := stats.KeepAlive
	if interval <= 0 {
		interval = 15 * time.Second
	}
	// An answer may be on its way for as long as a round trip takes.
	return time.Until(heard.Add(interval + 2*stats.RTT))
}

// Retire leaves the session to the visitors it has, for grace at most (0: as
// long as they take).
func (s *Session) Retire(grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		s.gone, s.grace = true, grace
		close(s.retired)
	}
}

// Retired is closed when the session is retired.
func (s *Session) Retired() <-chan struct{} { return s.retired }

// Grace is how long the visitors of a retired session have; 0: as long as they take.
func (s *Session) Grace() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grace
}

// Drain notes that the relay asked to move on.
func (s *Session) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain = true
}

// Draining reports whether the relay asked to move on: it serves those who are
// there, and nobody else.
func (s *Session) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain
}

// Leaving reports whether another session should take over from this one.
func (s *Session) Leaving() bool { return s.Ailing() || s.Worn() }

// Ailing reports whether another node had better be tried, too.
func (s *Session) Ailing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain || s.suspect || !s.Fresh()
}

// Worn reports whether the session is to be replaced for what has gone over it: nothing
// is wrong with its node. Nobody is told when it comes to that, which takes hours at
// the least, and from then on many times as long is left: who keeps sessions looks
// once an hour.
func (s *Session) Worn() bool { return s.Link.Stats().Worn }

// Fit reports whether the session is good enough to be the one in use.
func (s *Session) Fit() bool { return s.Alive() && s.Fresh() && !s.Draining() }

// List notes whether another node still knows the one of s. One that does not may
// be wrong: the session has to prove that it lives.
func (s *Session) List(listed bool) {
	s.mu.Lock()
	was := s.dropped
	s.dropped = !listed
	s.mu.Unlock()
	if !listed && !was {
		select {
		case s.doubt <- struct{}{}:
		default:
		}
	}
}

// Unlisted reports whether another node says that the one of s is gone.
func (s *Session) Unlisted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// NetworkChanged has a session that can move to another network do so.
func (s *Session) NetworkChanged() {
	if mover, ok := s.Link.(interface{ NetworkChanged() }); ok {
		mover.NetworkChanged()
	}
}

// Probe asks the relay for an answer now, and reports whether one came. Without one
// the session is to be left.
func (s *Session) Probe(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if s.Control.Ping(ctx) == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspect = true
	return false
}

// Prove probes the session whenever there is doubt, until ctx ends. failed is called
// after each probe that was not answered.
func (s *Session) Prove(ctx context.Context, failed func()) {
	for {
		select {
		case <-s.doubt:
			if !s.Probe(ctx) {
				failed()
			}
		case <-ctx.Done():
			return
		}
	}
}

// Watch calls stale when the session goes stale and when it is heard again, and moved
// when its transport is another one, until ctx or the session ends.
func (s *Session) Watch(ctx context.Context, stale, moved func()) {
	var changed <-chan struct{}
	if c, ok := s.Link.(interface{ TransportChanged() <-chan struct{} }); ok {
		changed = c.TransportChanged()
	}
	fresh := true
	for {
		wait := s.staleIn()
		if now := wait > 0; now != fresh {
			fresh = now
			if !fresh {
				s.log.Warn("relay not heard within the keep-alive interval", "relay", s.Addr)
			}
			stale()
		}
		if !fresh {
			wait = 250 * time.Millisecond
		}
		timer := time.NewTimer(wait + 10*time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.Link.Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
			s.log.Info("session goes on another way", "relay", s.Addr, "transport", string(s.Link.Transport()))
			moved()
		case <-timer.C:
		}
	}
}

// Follow calls handle with each of the relay's events, until ctx or the session ends.
func (s *Session) Follow(ctx context.Context, handle func(wire.Event)) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		begin := time.Now()
		err := s.Control.Events(ctx, handle)
		if ctx.Err() != nil || !s.Alive() {
			return
		}
		s.log.Debug("event stream ended", "error", err)
		if time.Since(begin) > time.Minute {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Link.Done():
			return
		case <-time.After(wait):
		}
	}
}

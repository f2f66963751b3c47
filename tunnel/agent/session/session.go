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

// Alive reports whether the session is still alive.
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

// Fresh reports whether the relay was heard from within the last keep-alive interval.
func (s *Session) Fresh() bool { return s.staleIn() > 0 }

// staleIn returns how long the session stays fresh if nothing is heard.
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

// Retire keeps the session only for the visitors it has, for grace at most (0: for as long as they
// take).
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

// Grace returns how long the visitors of a retired session have; 0: as long as they take.
func (s *Session) Grace() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grace
}

// Drain records that the relay asked to move to another session.
func (s *Session) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain = true
}

// Draining reports whether the relay asked to move: it serves the visitors it has, and no new ones.
func (s *Session) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain
}

// Leaving reports whether another session should take over from this one.
func (s *Session) Leaving() bool { return s.Ailing() || s.Worn() }

// Ailing reports whether another node should be tried as well.
func (s *Session) Ailing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain || s.suspect || !s.Fresh()
}

// Worn reports whether the session should be replaced because of how much has passed over it;
// nothing is wrong with its node. No event announces this. It takes hours at the least, and after
// that many times as long remains, so whoever keeps sessions checks once an hour.
func (s *Session) Worn() bool { return s.Link.Stats().Worn }

// Fit reports whether the session is good enough to be the one in use.
func (s *Session) Fit() bool { return s.Alive() && s.Fresh() && !s.Draining() }

// List records whether another node still knows the node of s. The other node may be wrong about
// it, so the session then has to prove that it is alive.
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

// Unlisted reports whether another node says that the node of s is gone.
func (s *Session) Unlisted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// NetworkChanged makes the session move to another network, if it can.
func (s *Session) NetworkChanged() {
	if mover, ok := s.Link.(interface{ NetworkChanged() }); ok {
		mover.NetworkChanged()
	}
}

// Probe asks the relay for an answer now, and reports whether one came. If not, the session should
// be abandoned.
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

// Prove probes the session whenever it is in doubt, until ctx ends. It calls failed after each
// unanswered probe.
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

// Watch calls stale when the session goes stale and when it is heard from again, and moved when its
// transport changes, until ctx or the session ends.
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

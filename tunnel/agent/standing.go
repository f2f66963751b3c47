package agent

import (
	"errors"
	"math/rand/v2"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/wire"
)

// standing is how the agent stands with the relay: what came of its attempts at a
// session. The agent's mutex guards it.
type standing struct {
	rejected  bool   // the relay refused the token
	pardon    pardon // of that refusal
	known     bool   // there was a session since the token or a pause changed
	attempts  int    // ended attempts at a session, whatever came of them
	lastError string // why there is no session; empty while all is well
}

// tries reports whether a session is to be tried for.
func (s *standing) tries(now time.Time) bool { return !s.rejected || s.pardon.due(now) }

// next is how long it is to the next try of a refused token; false if there is none.
func (s *standing) next(now time.Time) (time.Duration, bool) {
	if !s.rejected || s.pardon.pace == 0 {
		return 0, false
	}
	return s.pardon.at.Sub(now), true
}

// welcomed notes that the relay took the token.
func (s *standing) welcomed() {
	s.known, s.rejected, s.lastError = true, false, ""
	s.attempts++
}

// goesOn notes that another session is in use at once.
func (s *standing) goesOn() { s.lastError = "" }

// refused notes that the relay takes the token no more, or not for now.
func (s *standing) refused(why string, p pardon) { s.rejected, s.pardon, s.lastError = true, p, why }

// failed notes why an attempt with the relay at addr came to nothing. It returns false
// if the token was refused before, and could only not be tried again.
func (s *standing) failed(err error, addr string) (news bool) {
	if s.rejected && s.pardon.pace > 0 && !control.Final(err) {
		s.pardon = s.pardon.again() // why it was refused is still the last that is known
		return false
	}
	s.lastError = control.Describe(err, addr)
	if control.Final(err) {
		var p *wire.Problem
		errors.As(err, &p)
		s.rejected, s.pardon = true, pardonAfter(p.RetryAfter)
	}
	return true
}

// lost notes why the session with the relay at addr has ended.
func (s *standing) lost(err error, addr string) {
	if !s.rejected {
		s.lastError = control.Describe(err, addr)
	}
}

// renewed notes that another token is in force.
func (s *standing) renewed() { s.rejected, s.lastError = false, "" }

// forgotten notes that there is no token any more.
func (s *standing) forgotten() { s.rejected, s.known, s.lastError = false, false, "" }

// paused notes that no session is wished for. Why the token was refused holds after it.
func (s *standing) paused() {
	s.known = false
	if !s.rejected {
		s.lastError = ""
	}
}

// pardon is when a refused token is tried again. The relay says so for a token
// whose refusal may end without the agent's doing, as when its client is given
// more time. If pace is zero, the token is not tried again.
type pardon struct {
	pace time.Duration
	at   time.Time
}

// maxPardon bounds what a relay may say.
const maxPardon = 24 * time.Hour

// pardonAfter is the pardon that a relay gives with so many seconds. Agents that
// were refused at the same time come back at different ones.
func pardonAfter(seconds int) pardon {
	if seconds <= 0 {
		return pardon{}
	}
	return pardon{pace: min(time.Duration(min(seconds, 1<<20))*time.Second, maxPardon)}.again()
}

// again returns p with a time for the next try, in half a pace to one and a half.
func (p pardon) again() pardon {
	if p.pace > 0 {
		p.at = time.Now().Add(p.pace/2 + rand.N(p.pace))
	}
	return p
}

// due reports whether the token is to be tried.
func (p pardon) due(now time.Time) bool { return p.pace > 0 && !now.Before(p.at) }

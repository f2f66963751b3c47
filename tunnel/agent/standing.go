package agent

import (
	"errors"
	"math/rand/v2"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/wire"
)

// standing is the agent's standing with the relay: the results of its attempts at a session. The
// agent's mutex guards it.
type standing struct {
	rejected  bool   // the relay refused the token
	pardon    pardon // of that refusal
	known     bool   // there was a session since the token or a pause changed
	attempts  int    // ended attempts at a session, whatever came of them
	lastError string // why there is no session; empty while all is well
}

// tries reports whether to try for a session.
func (s *standing) tries(now time.Time) bool { return !s.rejected || s.pardon.due(now) }

// next returns how long it is until a refused token is tried again; false if it never is.
func (s *standing) next(now time.Time) (time.Duration, bool) {
	if !s.rejected || s.pardon.pace == 0 {
		return 0, false
	}
	return s.pardon.at.Sub(now), true
}

// welcomed records that the relay accepted the token.
func (s *standing) welcomed() {
	s.known, s.rejected, s.lastError = true, false, ""
	s.attempts++
}

// goesOn records that another session has taken over immediately.
func (s *standing) goesOn() { s.lastError = "" }

// refused records that the relay no longer accepts the token, or not for now.
func (s *standing) refused(why string, p pardon) { s.rejected, s.pardon, s.lastError = true, p, why }

// failed records why an attempt with the relay at addr failed. It returns false if the token had
// been refused before and merely could not be tried again.
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

// lost records why the session with the relay at addr has ended.
func (s *standing) lost(err error, addr string) {
	if !s.rejected {
		s.lastError = control.Describe(err, addr)
	}
}

// renewed records that another token is in use.
func (s *standing) renewed() { s.rejected, s.lastError = false, "" }

// forgotten records that there is no longer a token.
func (s *standing) forgotten() { s.rejected, s.known, s.lastError = false, false, "" }

// paused notes that no session is wished for. Why the token was refused holds after it.
func (s *standing) paused() {
	s.known = false
	if !s.rejected {
		s.lastError = ""
	}
}

// pardon says when to retry a refused token. The relay sends it for a token whose refusal may end
// without the agent's involvement, for example when its client is given more time. If pace is zero,
// the token is not retried.
type pardon struct {
	pace time.Duration
	at   time.Time
}

// maxPardon limits the value that a relay may send.
const maxPardon = 24 * time.Hour

// pardonAfter returns the pardon for the seconds that a relay has sent. Agents refused at the same
// time retry at different times.
func pardonAfter(seconds int) pardon {
	if seconds <= 0 {
		return pardon{}
	}
	return pardon{pace: min(time.Duration(min(seconds, 1<<20))*time.Second, maxPardon)}.again()
}

// again returns p with a time for the next try, between half a pace and one and a half from now.
func (p pardon) again() pardon {
	if p.pace > 0 {
		p.at = time.Now().Add(p.pace/2 + rand.N(p.pace))
	}
	return p
}

// due reports whether to try the token.
func (p pardon) due(now time.Time) bool { return p.pace > 0 && !now.Before(p.at) }

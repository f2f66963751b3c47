package agent

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/session"
	"adit/tunnel/agent/state"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Auth returns the current token.
func (a *Agent) Auth() AuthStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.authLocked()
}

func (a *Agent) authLocked() AuthStatus {
	state := a.stateLocked()
	s := AuthStatus{Configured: a.login.configured(), LastError: a.errorLocked(state)}
	if !s.Configured {
		return s
	}
	s.Authenticated = a.cur != nil && a.cur.Alive()
	s.ClientID = a.login.auth.ClientID
	if s.ClientID == "" {
		s.ClientID = a.login.clientID
	}
	s.Relay = a.login.token.Relay
	s.TokenHint = a.login.token.Hint()
	at := a.login.auth.ConfiguredAt
	s.ConfiguredAt = &at
	return s
}

// Configure tries token at its relay and then replaces the current one with it. If the relay
// refuses the token, nothing changes. A clientID binds the agent to that client: a token of any
// other client is refused.
func (a *Agent) Configure(ctx context.Context, token, clientID string) (AuthStatus, error) {
	if !a.turn.TryLock() {
		return AuthStatus{}, busy()
	}
	defer a.turn.Unlock()
	tok, err := wire.ParseToken(token)
	if err != nil {
		return AuthStatus{}, &refusal.Error{Code: refusal.CodeInvalidToken, Message: err.Error(), Field: "auth_token"}
	}
	if bad := checkClientID(clientID); bad != nil {
		return AuthStatus{}, bad
	}
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	s, err := a.dialer.Connect(ctx, tok.Relay, session.Joining{Token: tok, ClientID: clientID, Over: a.cfg.Transport})
	if err != nil {
		no := control.Refusal(err, tok.Relay)
		if no.Code == refusal.CodeRelayRejected {
			if control.Final(err) || errors.Is(err, link.ErrUntrusted) {
				no.Code = refusal.CodeInvalidToken // else the relay refuses for now, whatever the token
			}
			no.Field = "auth_token"
			if p := (*wire.Problem)(nil); errors.As(err, &p) && p.Field == "client_id" {
				no.Field = "client_id"
			}
		}
		a.poke() // the session in force may have been replaced for a moment
		return AuthStatus{}, no
	}
	taken, err := a.takeToken(tok, clientID)
	if err != nil {
		s.End("not taken")
		return AuthStatus{}, err
	}
	l := newLive(a, s)
	if taken.second != nil {
		taken.second.Retire(reconnectGrace)
	}
	if !a.adopt(l, taken.epoch, reconnectGrace) {
		l.end("not taken")
	}
	if taken.elsewhere {
		if err := a.saveTunnels(); err != nil {
			a.log.Error("tunnels not saved", "error", err)
		}
	}
	a.log.Info("token configured", "token", tok.Hint(), "replaced", taken.replaced)
	return a.Auth(), nil
}

// taken is what has changed for the caller by taking a new token.
type taken struct {
	epoch     int
	second    *live // it was made with the token before; nil without one
	replaced  bool  // there was a saved token before
	elsewhere bool  // what was granted before is another relay's
}

// takeToken saves tok and then puts it into force.
func (a *Agent) takeToken(tok wire.Token, clientID string) (taken, error) {
	a.saving.Lock() // until it is in force: nothing writes the one before again
	defer a.saving.Unlock()
	a.mu.Lock()
	before := a.login
	a.mu.Unlock()
	next, same := before.with(tok, clientID), before.grants(tok)
	if err := a.state.SaveAuth(next); err != nil {
		return taken{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if before.staysAt(tok) { // it may have moved meanwhile, and waits to save that
		next.Addresses, next.AddressesOf = a.login.auth.Addresses, a.login.auth.AddressesOf
	}
	a.login.take(next, tok)
	now := taken{
		epoch: a.login.epoch, second: a.second,
		replaced: before.configured() && before.accepted, elsewhere: !same && before.auth.GivenBy != "",
	}
	a.second, a.nodes = nil, nil
	a.standing.renewed()
	if !same {
		// Another relay knows nothing of what this one gave.
		clear(a.releases)
		clear(a.granted)
		for _, t := range a.tunnels {
			t.grant = state.Grant{}
		}
	}
	for _, t := range a.tunnels {
		t.failure = ""
	}
	return now, nil
}

// Forget removes the token and closes the session. Tunnels remain and wait.
func (a *Agent) Forget(ctx context.Context) error {
	if !a.turn.TryLock() {
		return busy()
	}
	defer a.turn.Unlock()
	l, err := a.dropToken()
	if err != nil {
		return err
	}
	a.log.Info("token forgotten")
	l.end("the token was forgotten")
	a.publish()
	a.poke()
	return nil
}

// dropToken saves that there is no token, and returns the sessions that used the old one.
func (a *Agent) dropToken() (sessions, error) {
	a.saving.Lock() // until it is so: nothing writes the token again
	defer a.saving.Unlock()
	a.mu.Lock()
	next := a.login.without()
	a.mu.Unlock()
	if err := a.state.SaveAuth(next); err != nil {
		return sessions{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.login.drop(next)
	a.standing.forgotten()
	return a.dropLocked(), nil
}

// Pause ends the session until Resume. The pause survives a restart.
func (a *Agent) Pause(ctx context.Context) (Status, error) {
	if err := a.setPaused(true); err != nil {
		return Status{}, err
	}
	return a.Status(), nil
}

// Resume undoes Pause, and waits a little for the session. A refused token is tried
// once more. Without a Pause there is nothing to undo and nothing to wait for.
func (a *Agent) Resume(ctx context.Context) (Status, error) {
	a.mu.Lock()
	attempts, paused := a.standing.attempts, a.login.auth.Paused
	a.mu.Unlock()
	if err := a.setPaused(false); err != nil {
		return Status{}, err
	}
	if !paused {
		return a.Status(), nil
	}
	return a.settled(ctx, attempts), nil
}

// setPaused saves the change before it takes effect; if it cannot be saved, it
// does not take effect.
func (a *Agent) setPaused(paused bool) error {
	l, changed, err := a.takePaused(paused)
	if err != nil || !changed {
		return err
	}
	l.end("paused")
	a.publish()
	a.poke()
	return nil
}

// takePaused returns the session that a pause ends.
func (a *Agent) takePaused(paused bool) (l sessions, changed bool, err error) {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	next := a.login.toSave()
	configured, was := a.login.configured(), a.login.auth.Paused
	a.mu.Unlock()
	switch {
	case !configured:
		return l, false, notConfigured()
	case was == paused:
		return l, false, nil
	}
	next.Paused = paused
	if err := a.state.SaveAuth(next); err != nil {
		return l, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.login.auth.Paused = paused
	if paused {
		a.standing.paused()
		l = a.dropLocked()
	} else {
		a.reconnect = true // a person is there, so a refused token is tried once more
	}
	return l, true, nil
}

// Reconnect immediately replaces the session with a new one, and waits briefly for it. A token that
// was refused is tried once more.
func (a *Agent) Reconnect(ctx context.Context) (Status, error) {
	a.mu.Lock()
	if !a.login.configured() {
		a.mu.Unlock()
		return Status{}, notConfigured()
	}
	if a.login.auth.Paused {
		a.mu.Unlock()
		return a.Status(), nil
	}
	a.reconnect = true
	attempts := a.standing.attempts
	a.mu.Unlock()
	a.poke()
	return a.settled(ctx, attempts), nil
}

// settled waits until an attempt at a session has ended since attempts was read, for relayWait at
// most.
func (a *Agent) settled(ctx context.Context, attempts int) Status {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	for {
		a.mu.Lock()
		if a.standing.attempts > attempts || !a.login.configured() || a.login.auth.Paused || a.closed {
			s := a.statusLocked()
			a.mu.Unlock()
			return s
		}
		changed := a.waitChangeLocked()
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return a.Status()
		case <-changed:
		}
	}
}

// validRelay reports whether addr is valid as a relay's address.
func validRelay(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || len(addr) > 260 || strings.ContainsAny(host, " /@") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// maxClientID limits the length of a client's name.
const maxClientID = 128

func checkClientID(id string) *refusal.Error {
	if len(id) > maxClientID {
		return refusal.Invalid("client_id", "must have at most %d bytes", maxClientID)
	}
	for _, r := range id {
		if r <= ' ' || r > '~' {
			return refusal.Invalid("client_id", "must have printable ASCII characters only")
		}
	}
	return nil
}

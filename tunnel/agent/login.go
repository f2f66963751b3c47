package agent

import (
	"slices"
	"time"

	"adit/tunnel/agent/state"
	"adit/tunnel/wire"
)

// login is the current token, and what belongs to it. The agent's mutex guards it.
type login struct {
	auth     state.Auth
	token    wire.Token // of auth.Token
	accepted bool       // false while auth.Token came from the environment and no relay took it yet
	clientID string     // as the relay calls the client
	epoch    int        // rises with each change of the token
}

// restored returns the saved login. If there is none, it uses token, which the environment has
// supplied for clientID, unless that is empty. It reports whether what was granted before belongs
// to another relay. An error says why a token cannot be used; there is none then.
func restored(saved state.Auth, token, clientID string, now time.Time) (l login, elsewhere bool, err error) {
	l = login{auth: saved, accepted: true}
	if l.auth.Token == "" && token != "" {
		l.auth.Token, l.auth.ClientID, l.auth.ConfiguredAt = token, clientID, now.UTC()
		l.accepted = false
	}
	if l.auth.Token != "" {
		if l.token, err = wire.ParseToken(l.auth.Token); err != nil {
			l.auth.Token, l.accepted = "", true
		}
	}
	relay := state.FingerprintOf(l.token)
	if l.auth.AddressesOf != relay { // the token is for another relay, as one from the environment may be
		l.auth.Addresses, l.auth.AddressesOf = nil, ""
	}
	if relay != "" && relay != l.auth.GivenBy {
		elsewhere = l.auth.GivenBy != "" // the token came from elsewhere, and another relay knows nothing of it
		l.auth.GivenBy = relay
	}
	return l, elsewhere, err
}

// configured reports whether there is a token.
func (l *login) configured() bool { return l.auth.Token != "" }

// wished reports whether there should be a session.
func (l *login) wished() bool { return l.configured() && !l.auth.Paused }

// addrs returns the addresses at which the relay may be, the token's last.
func (l *login) addrs() []string { return append(slices.Clone(l.auth.Addresses), l.token.Relay) }

// toSave returns the content for auth.json.
func (l *login) toSave() state.Auth {
	auth := l.auth
	if !l.accepted { // it stays where it came from
		auth.Token, auth.ClientID, auth.ConfiguredAt = "", "", time.Time{}
	}
	return auth
}

// grants reports whether what was granted before belongs to the relay of tok.
func (l *login) grants(tok wire.Token) bool { return l.auth.GivenBy == state.FingerprintOf(tok) }

// staysAt reports whether tok is for the same relay and address as the current token.
func (l *login) staysAt(tok wire.Token) bool { return l.grants(tok) && l.token.Relay == tok.Relay }

// with returns the content of auth.json for another token.
func (l *login) with(tok wire.Token, clientID string) state.Auth {
	next := l.auth
	next.Token, next.ClientID, next.Paused = tok.Reveal(), clientID, false
	next.ConfiguredAt = time.Now().UTC()
	next.GivenBy = state.FingerprintOf(tok)
	if !l.staysAt(tok) {
		next.Addresses, next.AddressesOf = nil, ""
	}
	return next
}

// take makes tok the current token, with auth as saved for it.
func (l *login) take(auth state.Auth, tok wire.Token) {
	l.auth, l.token, l.accepted = auth, tok, true
	l.epoch++
}

// without returns the content of auth.json for no token.
func (l *login) without() state.Auth {
	next := l.auth
	next.Token, next.ClientID, next.Paused, next.Addresses, next.AddressesOf = "", "", false, nil, ""
	next.ConfiguredAt = time.Time{}
	return next
}

// drop removes the current token, with auth as saved for that.
func (l *login) drop(auth state.Auth) {
	l.take(auth, wire.Token{})
	l.clientID = ""
}

// accept records that the relay accepted the token, and calls the client clientID. It reports
// whether the token must be saved.
func (l *login) accept(clientID string) (save bool) {
	save = !l.accepted
	l.clientID, l.accepted = clientID, true
	return save
}

// moveTo records where the relay is from now on.
func (l *login) moveTo(addrs []string) {
	l.auth.Addresses, l.auth.AddressesOf = addrs, state.FingerprintOf(l.token)
}

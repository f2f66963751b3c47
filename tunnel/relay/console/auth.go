package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"adit/tunnel/relay/audit"
)

// need is what a request requires.
type need int

const (
	needNothing need = iota
	needAccount      // a person signed in with an account of their own
	needRead         // anyone who is let in
	needWrite        // an administrator, or an API token that may write
	needAdmin        // an administrator; no API token
)

// who identifies who makes a request.
type who struct {
	actor   Actor
	account string // if signed in with an account
	role    string
	scope   string // of an API token, otherwise ""
	login   string // id of the browser's login, otherwise ""
	expires time.Time
}

func (w who) may(n need) bool {
	admin := w.role == RoleAdministrator && w.scope == ""
	switch n {
	case needAccount:
		return w.account != ""
	case needRead:
		return true
	case needWrite:
		return admin || w.scope == ScopeWrite
	case needAdmin:
		return admin
	}
	return n == needNothing
}

var (
	errUnauthorized = &Error{http.StatusUnauthorized, "unauthorized", "sign in, or send an API token or the admin token as Bearer", ""}
	errToken        = &Error{http.StatusUnauthorized, "unauthorized", "the token is wrong, was deleted or has expired", ""}
	errTries        = &Error{http.StatusTooManyRequests, "too_many_tries", "too many wrong attempts came from here; wait a moment", ""}
	errForbidden    = &Error{http.StatusForbidden, "forbidden", "this needs an administrator", ""}
	errScope        = &Error{http.StatusForbidden, "forbidden", "this API token may not do this", ""}
	errNoAccount    = &Error{http.StatusForbidden, "forbidden", "this is for people who are signed in with an account of their own", ""}
)

// isAdmin reports whether a secret is the admin token.
func (c *Console) isAdmin(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], c.token[:]) == 1
}

// sureOf is isAdmin for an admin token that cannot be guessed, such as those that the
// relay makes. Whoever has it is let in despite any number of failed attempts from the
// same address, which may belong to a proxy or to the machine itself.
func (c *Console) sureOf(secret string) bool { return len(secret) >= sureLength && c.isAdmin(secret) }

// sureLength is the length of 32 random bytes in base64.
const sureLength = 43

// identify returns who makes a request, by its Bearer token or otherwise by its login
// cookie.
func (c *Console) identify(r *http.Request) (who, error) {
	if auth := r.Header.Values("Authorization"); len(auth) > 0 {
		scheme, secret, _ := strings.Cut(auth[0], " ")
		if len(auth) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return who{}, errUnauthorized
		}
		return c.bearer(r, strings.TrimSpace(secret))
	}
	l, id, ok := c.loginOf(r)
	if !ok {
		return who{}, errUnauthorized
	}
	w := who{login: id, expires: l.Expires, actor: Actor{Kind: KindAdminToken, Address: addressOf(r)}, role: RoleAdministrator}
	if l.Account == "" {
		return w, nil
	}
	a, _, ok := c.account(l.Account)
	if !ok || a.Disabled || !l.of(a) {
		return who{}, errUnauthorized
	}
	w.account, w.role = a.Name, a.Role
	w.actor.Kind, w.actor.Name = KindUser, a.Name
	return w, nil
}

// bearer checks a secret, and slows down an address that guesses.
func (c *Console) bearer(r *http.Request, secret string) (who, error) {
	w := who{actor: Actor{Kind: KindAdminToken, Address: addressOf(r)}, role: RoleAdministrator}
	if c.sureOf(secret) {
		return w, nil
	}
	if t, ok := c.tokenOf(secret); ok {
		w.actor.Kind, w.actor.Name, w.scope = KindAPIToken, t.Name, t.Scope
		return w, nil
	}
	key := addressKey(r)
	if !c.limits.Take(key) {
		return who{}, errTries
	}
	if c.isAdmin(secret) {
		c.limits.Right(key)
		return w, nil
	}
	c.log.Warn("console: wrong token", "address", addressOf(r))
	return who{}, errToken
}

// admit lets a request in if it may do what it needs, and records in the request's
// context who makes it.
func (c *Console) admit(r *http.Request, n need) (*http.Request, who, error) {
	w, err := c.identify(r)
	switch {
	case err != nil:
		return r, w, err
	case w.may(n):
		return r.WithContext(audit.WithActor(r.Context(), w.actor)), w, nil
	case n == needAccount:
		return r, w, errNoAccount
	case w.scope != "":
		return r, w, errScope
	}
	return r, w, errForbidden
}

package console

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"adit/tunnel/relay/audit"
)

// SignedIn says who is signed in, and whether anybody can sign in.
type SignedIn struct {
	In          bool       `json:"signed_in"`
	SetupNeeded bool       `json:"setup_needed"` // nobody has an account yet
	Account     string     `json:"account,omitempty"`
	Role        string     `json:"role,omitempty"`
	Kind        string     `json:"kind,omitempty"`
	Scope       string     `json:"scope,omitempty"`
	TOTP        bool       `json:"totp"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`
}

func (c *Console) session(w http.ResponseWriter, r *http.Request) error {
	who, err := c.identify(r)
	if err != nil {
		if r.Header.Get("Authorization") != "" {
			return err
		}
		return write(w, http.StatusOK, SignedIn{SetupNeeded: c.setupNeeded()})
	}
	return write(w, http.StatusOK, c.sessionOf(who))
}

func (c *Console) sessionOf(w who) SignedIn {
	s := SignedIn{In: true, SetupNeeded: c.setupNeeded(), Account: w.account, Role: w.role, Kind: w.actor.Kind, Scope: w.scope}
	if a, _, ok := c.account(w.account); ok {
		s.TOTP = a.TOTP != ""
	}
	if !w.expires.IsZero() {
		s.ExpiresAt = &w.expires
	}
	return s
}

// signIn signs a browser in with an account or with the admin token.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Name     string `json:"name"`
		Password string `json:"password"`
		Code     string `json:"code"`
		Token    string `json:"token"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	key := addressKey(r)
	if !c.limits.Take(key) && !c.sureOf(q.Token) {
		return errTries
	}
	var a record // empty: by the admin token
	var err error
	switch {
	case q.Token != "":
		if !c.isAdmin(q.Token) {
			err = errToken
		}
	case q.Name == "":
		err = invalid("name", "send a name and password, or the admin token")
	default:
		a, err = c.prove(r.Context(), q.Name, q.Password, q.Code)
	}
	if err == nil || errors.Is(err, errCodeNeeded) {
		c.limits.Right(key)
	}
	actor := Actor{Kind: KindAdminToken, Address: addressOf(r)}
	if q.Token == "" {
		actor.Kind = KindUser
	}
	if err == nil {
		actor.Name = a.Name
	}
	r = r.WithContext(audit.WithActor(r.Context(), actor))
	if err != nil {
		if isLoginRefusal(err) || errors.Is(err, errToken) {
			c.refused(r, a.Name)
		}
		return err
	}
	return c.signedIn(w, r, a)
}

// signedIn gives the browser its cookie and answers who it is now: an account, or without
// a name the holder of the admin token.
func (c *Console) signedIn(w http.ResponseWriter, r *http.Request, a record) error {
	// A browser that signs in again has one login, not two.
	if _, id, ok := c.loginOf(r); ok {
		if err := c.endLogin(r.Context(), id); err != nil {
			return err
		}
	}
	l, err := c.logIn(w, r, a)
	if err != nil {
		return err
	}
	c.log.Info("console: signed in", "account", cmp.Or(a.Name, "admin token"), "address", addressOf(r))
	c.note(r, "login", a.Name, nil)
	who := who{actor: audit.ActorOf(r.Context()), role: cmp.Or(a.Role, RoleAdministrator), account: a.Name, expires: l.Expires}
	return write(w, http.StatusOK, c.sessionOf(who))
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := c.logOut(w, r); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setup creates the first account for whoever has the code that the relay printed.
func (c *Console) setup(w http.ResponseWriter, r *http.Request) (err error) {
	var q struct {
		Code     string `json:"code"`
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	key := addressKey(r)
	if !c.limits.Take(key) {
		return errTries
	}
	c.setupMu.Lock() // so that the right code, used twice at the same time, works only once
	defer c.setupMu.Unlock()
	if !c.setupNeeded() {
		return &Error{http.StatusConflict, "conflict", "an administrator was set up already; sign in", ""}
	}
	if subtle.ConstantTimeCompare([]byte(plainCode(q.Code)), []byte(plainCode(c.cfg.SetupCode))) != 1 {
		c.log.Warn("console: wrong set-up code", "address", addressOf(r))
		return &Error{http.StatusUnauthorized, "wrong_code", "the set-up code is wrong; the relay printed it when it started, and keeps it in the file setup_code of its data folder", "code"}
	}
	c.limits.Right(key)
	end, err := c.cfg.Relay.BeginChange(r.Context(), r.Method+" "+r.URL.Path)
	if err != nil {
		return err
	}
	defer func() { end(err) }()
	a, err := c.newAccount(r.Context(), q.Name, RoleAdministrator, q.Password)
	if err != nil {
		return err
	}
	r = r.WithContext(audit.WithActor(r.Context(), Actor{Kind: KindUser, Name: a.Name, Address: addressOf(r)}))
	c.log.Info("console: the first administrator was set up", "account", a.Name)
	c.note(r, "user.add", a.Name, map[string]any{"role": a.Role, "setup": true})
	return c.signedIn(w, r, a)
}

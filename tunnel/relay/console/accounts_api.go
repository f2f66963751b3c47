package console

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

func (c *Console) addAccount(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Name     string `json:"name"`
		Role     string `json:"role"`
		Password string `json:"password"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	a, err := c.newAccount(r.Context(), q.Name, q.Role, q.Password)
	if err != nil {
		return err
	}
	c.note(r, "user.add", a.Name, map[string]any{"role": a.Role})
	return write(w, http.StatusCreated, a.shown())
}

// setAccount lets an administrator change an account: its role, its password, whether it
// may sign in, and a lost second factor.
func (c *Console) setAccount(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Role     *string `json:"role"`
		Password *string `json:"password"`
		Disabled *bool   `json:"disabled"`
		TOTP     *bool   `json:"totp"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	name := r.PathValue("name")
	changed := map[string]any{}
	var hash string
	if q.Password != nil {
		err := checkNewPassword(name, *q.Password)
		if err == nil {
			hash, err = c.hashes.hash(r.Context(), *q.Password)
		}
		if err != nil {
			return err
		}
		changed["password"] = true
	}
	switch {
	case q.Role != nil && *q.Role != RoleAdministrator && *q.Role != RoleViewer:
		return invalid("role", "role must be administrator or viewer")
	case q.TOTP != nil && *q.TOTP:
		return invalid("totp", "a second factor is set up by its owner; totp can be false only")
	}
	_, current, _ := c.loginOf(r)
	if hash != "" && current != "" {
		if err := c.goOn(r.Context(), current, name, hash); err != nil {
			return err
		}
	}
	var a record
	apply := func(a *record) error {
		if q.Role != nil {
			a.Role, changed["role"] = *q.Role, *q.Role
		}
		if hash != "" {
			a.Hash = hash
		}
		if q.Disabled != nil {
			a.Disabled, changed["disabled"] = *q.Disabled, *q.Disabled
		}
		if q.TOTP != nil {
			a.TOTP, a.Pending, a.Recovery, changed["totp"] = "", "", nil, false
		}
		return nil
	}
	var err error
	if q.Role != nil && *q.Role == RoleViewer || q.Disabled != nil && *q.Disabled {
		err = c.oneLess(r.Context(), name, func(found record, rev uint64) (bool, error) {
			a = found
			_ = apply(&a)
			return c.put(r.Context(), accountPrefix+name, a, rev)
		})
	} else {
		a, err = c.change(r.Context(), name, apply)
	}
	if err != nil {
		return err
	}
	if hash != "" || a.Disabled || q.TOTP != nil {
		c.endLogins(r.Context(), name, current)
	}
	c.note(r, "user.set", name, changed)
	return write(w, http.StatusOK, a.shown())
}

func (c *Console) deleteAccount(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := c.removeAccount(r.Context(), name); err != nil {
		return err
	}
	c.note(r, "user.delete", name, nil)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// own checks the requester's password again: a browser left open must not be enough to
// take over an account.
func (c *Console) own(r *http.Request, who who, password string) error {
	if !c.limits.Take("own " + who.account) {
		return errTries
	}
	a, _, _ := c.account(who.account)
	right, err := c.hashes.check(r.Context(), a.Hash, password)
	if err != nil {
		return err
	}
	if !right {
		return invalid("password", "the password is wrong")
	}
	c.limits.Right("own " + who.account)
	return nil
}

func (c *Console) setPassword(w http.ResponseWriter, r *http.Request, who who) error {
	var q struct {
		Password    string `json:"password"`
		NewPassword string `json:"new_password"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if err := c.own(r, who, q.Password); err != nil {
		return err
	}
	if err := checkNewPassword(who.account, q.NewPassword); err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			e := *refused
			e.Field = "new_password"
			return &e
		}
		return err
	}
	hash, err := c.hashes.hash(r.Context(), q.NewPassword)
	if err != nil {
		return err
	}
	if err := c.goOn(r.Context(), who.login, who.account, hash); err != nil {
		return err
	}
	if _, err := c.change(r.Context(), who.account, func(a *record) error { a.Hash = hash; return nil }); err != nil {
		return err
	}
	c.endLogins(r.Context(), who.account, who.login)
	c.note(r, "user.set", who.account, map[string]any{"password": true})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Enrolment is what an authenticator app needs, shown only once.
type Enrolment struct {
	Secret string `json:"secret"`
	URI    string `json:"uri"`
}

// beginTOTP creates a secret. It takes effect once its app has shown a code.
func (c *Console) beginTOTP(w http.ResponseWriter, r *http.Request, who who) error {
	var q struct {
		Password string `json:"password"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if err := c.own(r, who, q.Password); err != nil {
		return err
	}
	secret := newTOTPSecret()
	_, err := c.change(r.Context(), who.account, func(a *record) error {
		if a.TOTP != "" {
			return &Error{http.StatusConflict, "conflict", "a second factor is set up already; remove it first", ""}
		}
		a.Pending = secret
		return nil
	})
	if err != nil {
		return err
	}
	issuer := strings.TrimSuffix("adit "+c.cfg.Relay.Status().Domain, " ")
	return write(w, http.StatusOK, Enrolment{Secret: secret, URI: totpURI(issuer, who.account, secret)})
}

func (c *Console) confirmTOTP(w http.ResponseWriter, r *http.Request, who who) error {
	var q struct {
		Code string `json:"code"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if !c.limits.Take("code " + who.account) {
		return errTries
	}
	codes, kept := newRecoveryCodes()
	_, err := c.change(r.Context(), who.account, func(a *record) error {
		step, ok := checkTOTP(a.Pending, plainCode(q.Code), time.Now(), 0)
		if !ok {
			return invalid("code", "the code is wrong; is the phone's clock right?")
		}
		a.TOTP, a.Pending, a.Step, a.Recovery = a.Pending, "", step, kept
		return nil
	})
	if err != nil {
		return err
	}
	c.limits.Right("code " + who.account)
	c.endLogins(r.Context(), who.account, who.login)
	c.note(r, "user.set", who.account, map[string]any{"totp": true})
	return write(w, http.StatusOK, struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}{codes})
}

func (c *Console) removeTOTP(w http.ResponseWriter, r *http.Request, who who) error {
	var q struct {
		Password string `json:"password"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if err := c.own(r, who, q.Password); err != nil {
		return err
	}
	if _, err := c.change(r.Context(), who.account, func(a *record) error {
		a.TOTP, a.Pending, a.Recovery = "", "", nil
		return nil
	}); err != nil {
		return err
	}
	c.note(r, "user.set", who.account, map[string]any{"totp": false})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *Console) dropLogin(w http.ResponseWriter, r *http.Request, who who) error {
	prefix := r.PathValue("id")
	for id, l := range c.logins() {
		if id[:16] == prefix && (l.Account == who.account || who.may(needAdmin)) {
			if err := c.endLogin(r.Context(), id); err != nil {
				return err
			}
			c.note(r, "login.end", l.Account, nil)
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	return &Error{http.StatusNotFound, "not_found", "there is no such login", ""}
}

func (c *Console) addToken(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Name      string    `json:"name"`
		Scope     string    `json:"scope"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	t, err := c.newToken(r.Context(), q.Name, q.Scope, q.ExpiresAt)
	if err != nil {
		return err
	}
	c.note(r, "token.add", t.Name, map[string]any{"scope": t.Scope})
	return write(w, http.StatusCreated, t)
}

func (c *Console) deleteToken(w http.ResponseWriter, r *http.Request) error {
	name, err := c.dropToken(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	c.note(r, "token.delete", name, nil)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

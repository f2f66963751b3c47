package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"adit/internal/natural"
)

// Keeper stores what the console must not lose and shares with other nodes: accounts, API
// tokens and logins. Reads are from memory.
type Keeper interface {
	// Get returns a value and its revision.
	Get(key string) (value []byte, revision uint64, ok bool)
	// Put stores a value in place of a revision, or 0 for none. saved is false if
	// something else is there.
	Put(ctx context.Context, key string, value []byte, revision uint64) (saved bool, err error)
	// Remove removes a revision. removed is false if something else is there.
	Remove(ctx context.Context, key string, revision uint64) (removed bool, err error)
	// List returns all values whose keys begin with prefix.
	List(prefix string) map[string][]byte
}

// The roles of accounts.
const (
	RoleAdministrator = "administrator" // may do everything
	RoleViewer        = "viewer"        // may read everything but secrets
)

const (
	accountPrefix = "account."
	setupKey      = "setup" // contains the name of the account that set-up created
	maxAccounts   = 1000
)

// record is an account as it is stored.
type record struct {
	Name     string    `json:"name"`
	Role     string    `json:"role"`
	Hash     string    `json:"hash"` // argon2id
	Disabled bool      `json:"disabled,omitempty"`
	Created  time.Time `json:"created"`
	Seen     time.Time `json:"seen,omitzero"` // the last login

	TOTP     string   `json:"totp,omitempty"`    // secret of the second factor, base32
	Pending  string   `json:"pending,omitempty"` // a secret that its app has not confirmed yet
	Step     int64    `json:"step,omitempty"`    // of the last code used
	Recovery []string `json:"recovery,omitempty"`
}

// Account is an account as the operator sees it.
type Account struct {
	Name          string     `json:"name"`
	Role          string     `json:"role"`
	Disabled      bool       `json:"disabled"`
	TOTP          bool       `json:"totp"`
	RecoveryCodes int        `json:"recovery_code_count"`
	CreatedAt     time.Time  `json:"created_at"`
	LastLoginAt   *time.Time `json:"last_login_at,omitempty"`
}

func (a *record) shown() Account {
	v := Account{Name: a.Name, Role: a.Role, Disabled: a.Disabled, TOTP: a.TOTP != "", RecoveryCodes: len(a.Recovery), CreatedAt: a.Created}
	if !a.Seen.IsZero() {
		v.LastLoginAt = &a.Seen
	}
	return v
}

var accountName = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?$`)

func invalid(field, format string, args ...any) error {
	return &Error{http.StatusBadRequest, "invalid_parameter", fmt.Sprintf(format, args...), field}
}

func noAccount(name string) error {
	return &Error{http.StatusNotFound, "not_found", "there is no account named " + name, ""}
}

// account returns an account and its revision.
func (c *Console) account(name string) (record, uint64, bool) {
	var a record
	value, rev, ok := c.cfg.Keeper.Get(accountPrefix + name)
	if !ok || json.Unmarshal(value, &a) != nil {
		return record{}, 0, false
	}
	return a, rev, true
}

// accounts returns all accounts by name.
func (c *Console) accounts() []record {
	list := []record{}
	for _, value := range c.cfg.Keeper.List(accountPrefix) {
		var a record
		if json.Unmarshal(value, &a) == nil {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b record) int { return natural.Compare(a.Name, b.Name) })
	return list
}

var errBusy = &Error{http.StatusConflict, "conflict", "this was changed by someone else at the same time; try again", ""}

// change applies f to an account and stores it. f may run again if another node has
// changed the account in the meantime.
func (c *Console) change(ctx context.Context, name string, f func(*record) error) (record, error) {
	for range 5 {
		a, rev, ok := c.account(name)
		if !ok {
			return a, noAccount(name)
		}
		if err := f(&a); err != nil {
			return a, err
		}
		saved, err := c.put(ctx, accountPrefix+name, a, rev)
		if saved || err != nil {
			return a, err
		}
	}
	return record{}, errBusy
}

func (c *Console) put(ctx context.Context, key string, v any, rev uint64) (bool, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return false, err
	}
	return c.cfg.Keeper.Put(ctx, key, data, rev)
}

// newAccount creates an account.
func (c *Console) newAccount(ctx context.Context, name, role, password string) (record, error) {
	switch {
	case !accountName.MatchString(name):
		return record{}, invalid("name", "a name has 1 to 64 lower-case letters, digits, - and _, and begins and ends with a letter or digit")
	case role != RoleAdministrator && role != RoleViewer:
		return record{}, invalid("role", "role must be administrator or viewer")
	case len(c.accounts()) >= maxAccounts:
		return record{}, invalid("name", "there are %d accounts already", maxAccounts)
	}
	if _, _, ok := c.account(name); ok {
		return record{}, invalid("name", "there is an account named %s already", name)
	}
	if err := checkNewPassword(name, password); err != nil {
		return record{}, err
	}
	hash, err := c.hashes.hash(ctx, password)
	if err != nil {
		return record{}, err
	}
	a := record{Name: name, Role: role, Hash: hash, Created: time.Now().UTC()}
	saved, err := c.put(ctx, accountPrefix+name, a, 0)
	if err == nil && !saved {
		err = invalid("name", "there is an account named %s already", name)
	}
	if err != nil {
		return record{}, err
	}
	c.settled(ctx, name)
	return a, nil
}

// setupNeeded reports whether nobody has an account yet.
func (c *Console) setupNeeded() bool {
	if _, _, done := c.cfg.Keeper.Get(setupKey); done {
		return false
	}
	return c.cfg.SetupCode != ""
}

// settled ends the set-up. Its code no longer works.
func (c *Console) settled(ctx context.Context, name string) {
	if _, err := c.put(ctx, setupKey, name, 0); err != nil {
		c.log.Warn("console: the set-up is not marked as done", "error", err)
	}
	if c.cfg.SetupDone != nil {
		c.cfg.SetupDone()
	}
}

// removeAccount removes an account and ends its logins.
func (c *Console) removeAccount(ctx context.Context, name string) error {
	err := c.oneLess(ctx, name, func(_ record, rev uint64) (bool, error) {
		return c.cfg.Keeper.Remove(ctx, accountPrefix+name, rev)
	})
	if err != nil {
		return err
	}
	c.endLogins(ctx, name, "")
	return nil
}

var (
	errLogin = &Error{http.StatusUnauthorized, "wrong_login", "the name or the password is wrong", ""}
	errCode  = &Error{http.StatusUnauthorized, "wrong_code", "the code is wrong or was used already", "code"}
	// errCodeNeeded is the answer to a correct password if the account has a second
	// factor.
	errCodeNeeded = &Error{http.StatusUnauthorized, "code_required", "this account also asks for a code from its authenticator app", "code"}
)

// prove checks a name and password, and the second factor if there is one. The caller has
// already counted an attempt for the address.
func (c *Console) prove(ctx context.Context, name, password, code string) (record, error) {
	a, _, ok := c.account(name)
	if len(password) > maxPassword {
		return a, errLogin
	}
	right, err := c.hashes.check(ctx, a.Hash, password)
	switch {
	case err != nil:
		return a, err
	case !ok || !right || a.Disabled:
		return a, errLogin
	case a.TOTP != "" && code == "":
		return a, errCodeNeeded
	case a.TOTP != "":
		// Count it for the account: the password is known, and addresses are cheap.
		if !c.limits.Take("code " + name) {
			return a, errTries
		}
	}
	proved := a.Hash
	a, err = c.change(ctx, name, func(a *record) error {
		if a.Hash != proved || a.Disabled { // changed while the password was checked
			return errLogin
		}
		if a.TOTP != "" && !a.useCode(code, time.Now()) {
			return errCode
		}
		a.Seen = time.Now().UTC()
		return nil
	})
	if err == nil && a.TOTP != "" {
		c.limits.Right("code " + name)
	}
	return a, err
}

// useCode uses up a code of the app, or a recovery code.
func (a *record) useCode(code string, now time.Time) bool {
	code = plainCode(code)
	if step, ok := checkTOTP(a.TOTP, code, now, a.Step); ok {
		a.Step = step
		return true
	}
	if i := slices.Index(a.Recovery, recoveryHash(code)); i >= 0 {
		a.Recovery = slices.Delete(slices.Clone(a.Recovery), i, i+1)
		return true
	}
	return false
}

// isLoginRefusal reports whether an error stands for a wrong name, password or code.
func isLoginRefusal(err error) bool {
	return errors.Is(err, errLogin) || errors.Is(err, errCode) || errors.Is(err, errTries)
}

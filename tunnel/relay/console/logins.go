package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	loginPrefix = "login."
	loginLife   = 12 * time.Hour
	maxLogins   = 1000
	cookieName  = "adit_console"
	// hostPrefix before a cookie's name makes browsers accept it only from this host over
	// TLS (RFC 6265bis, 4.1.3.2), so that no neighbouring name can plant one.
	hostPrefix = "__Host-"
	// clockSet is by how much the clock may be set back without signing out those who
	// signed in earlier.
	clockSet = 24 * time.Hour
)

// login is a browser that is signed in. Its key is the hash of its cookie, so that
// whoever reads the store cannot sign in.
type login struct {
	Account string    `json:"account,omitempty"` // empty: by the admin token
	Marks   []string  `json:"marks,omitempty"`   // of the account's passwords under which it stays valid, or of the admin token
	Address string    `json:"address"`
	Agent   string    `json:"agent,omitempty"` // the browser's own name
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Login is a signed-in browser as its owner sees it.
type Login struct {
	ID        string    `json:"id"`
	Account   string    `json:"account,omitempty"`
	Address   string    `json:"address"`
	Browser   string    `json:"browser,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Current   bool      `json:"current"`
}

func sumOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// loginOf returns the login that belongs to a request's cookie, and its id. A cookie
// counts only if sent by the console's own page, since pages on other ports of this host
// have it too.
func (c *Console) loginOf(r *http.Request) (login, string, bool) {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return login{}, "", false
	}
	cookie, err := r.Cookie(cookieNameFor(r))
	if err != nil || cookie.Value == "" || len(cookie.Value) > 128 {
		return login{}, "", false
	}
	id := sumOf(cookie.Value)
	var l login
	value, _, ok := c.cfg.Keeper.Get(loginPrefix + id)
	if !ok || json.Unmarshal(value, &l) != nil || l.over(time.Now()) || c.foreign(l) {
		return login{}, "", false
	}
	return l, id, true
}

// foreign reports whether a login was made with an admin token other than this node's:
// one that has been replaced, or another node's.
func (c *Console) foreign(l login) bool {
	return l.Account == "" && !slices.Contains(l.Marks, c.adminMark)
}

// over reports whether the login has expired. A login made in the future is from a time
// when the clock was wrong, and would last too long by as much.
func (l login) over(now time.Time) bool {
	return !now.Before(l.Expires) || l.Created.After(now.Add(clockSet))
}

// ended reports whether the login has ended, either by the clock or because the password
// that it was made with has changed. Removing it is not enough: this node may not have
// heard of it yet, or the store may be unavailable. A login by an admin token ends by the
// clock only, since the token may be another node's.
func (c *Console) ended(l login, now time.Time) bool {
	if l.Account == "" || l.over(now) {
		return l.over(now)
	}
	a, _, ok := c.account(l.Account)
	return !ok || !l.of(a)
}

// of reports whether a login was made with the account's current password, or remains
// valid with it.
func (l login) of(a record) bool { return slices.Contains(l.Marks, markOf(a.Hash)) }

// markOf identifies one password of one account, and tells accounts with the same name
// apart: no two hashes have the same salt.
func markOf(hash string) string { return sumOf(hash)[:16] }

// adminMarkOf identifies one admin token. For a token that could be guessed, the store
// must contain nothing to test guesses against, so its logins end with this process.
func adminMarkOf(token string) string {
	if len(token) < sureLength {
		token = rand.Text()
	}
	return markOf(token)
}

// goOn keeps a login valid under another password of its account, once the account has
// it.
func (c *Console) goOn(ctx context.Context, id, account, hash string) error {
	for range 5 {
		value, rev, ok := c.cfg.Keeper.Get(loginPrefix + id)
		var l login
		if !ok || json.Unmarshal(value, &l) != nil || l.Account != account {
			return nil
		}
		l.Marks = append(l.Marks, markOf(hash))
		if saved, err := c.put(ctx, loginPrefix+id, l, rev); saved || err != nil {
			return err
		}
	}
	return errBusy
}

// logIn signs the browser in and gives it its cookie. The login is for an account or,
// without a name, for the admin token.
func (c *Console) logIn(w http.ResponseWriter, r *http.Request, a record) (login, error) {
	c.forgetLogins(r.Context())
	secret, now := rand.Text(), time.Now().UTC()
	agent := r.UserAgent()
	l := login{Account: a.Name, Address: addressOf(r), Agent: agent[:min(len(agent), 200)], Created: now, Expires: now.Add(loginLife)}
	l.Agent = strings.ToValidUTF8(l.Agent, "")
	l.Marks = []string{c.adminMark}
	if a.Name != "" {
		l.Marks = []string{markOf(a.Hash)}
	}
	if _, err := c.put(r.Context(), loginPrefix+sumOf(secret), l, 0); err != nil {
		return l, err
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieNameFor(r), Value: secret, Path: "/", MaxAge: int(loginLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r),
	})
	return l, nil
}

// secure reports whether the browser uses TLS, to us or to a proxy in front. A forged
// header only keeps its sender's own cookie away from plain HTTP.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookieNameFor returns the name of the login cookie for this browser.
func cookieNameFor(r *http.Request) string {
	if secure(r) {
		return hostPrefix + cookieName
	}
	return cookieName
}

func (c *Console) logOut(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, &http.Cookie{Name: cookieNameFor(r), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r)})
	if _, id, ok := c.loginOf(r); ok {
		return c.endLogin(r.Context(), id)
	}
	return nil
}

func (c *Console) endLogin(ctx context.Context, id string) error {
	return c.drop(ctx, loginPrefix+id)
}

// drop removes a value. It is no error if the value is not there.
func (c *Console) drop(ctx context.Context, key string) error {
	for range 5 {
		_, rev, ok := c.cfg.Keeper.Get(key)
		if !ok {
			return nil
		}
		if removed, err := c.cfg.Keeper.Remove(ctx, key, rev); removed || err != nil {
			return err
		}
	}
	return errBusy
}

// endLogins ends all of an account's logins except one.
func (c *Console) endLogins(ctx context.Context, account, but string) {
	for id, l := range c.logins() {
		if l.Account == account && id != but {
			if err := c.endLogin(ctx, id); err != nil {
				c.log.Warn("console: a login was not ended", "account", account, "error", err)
			}
		}
	}
}

func (c *Console) logins() map[string]login {
	all := map[string]login{}
	for key, value := range c.cfg.Keeper.List(loginPrefix) {
		var l login
		if json.Unmarshal(value, &l) == nil {
			all[strings.TrimPrefix(key, loginPrefix)] = l
		}
	}
	return all
}

// forgetLogins removes logins that have ended, and the oldest ones if there are too many.
func (c *Console) forgetLogins(ctx context.Context) {
	all, now := c.logins(), time.Now()
	ids := make([]string, 0, len(all))
	for id := range all {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return all[a].Created.Compare(all[b].Created) })
	for i, id := range ids {
		if !c.ended(all[id], now) && len(ids)-i < maxLogins {
			continue
		}
		if err := c.endLogin(ctx, id); err != nil {
			c.log.Warn("console: an old login was not removed", "error", err)
		}
	}
}

// loginList returns the logins of an account, or of everybody if all is set.
func (c *Console) loginList(account, current string, all bool) []Login {
	list := []Login{}
	for id, l := range c.logins() {
		if (all || l.Account == account) && !c.ended(l, time.Now()) && !c.foreign(l) {
			list = append(list, Login{
				ID: id[:16], Account: l.Account, Address: l.Address, Browser: l.Agent,
				CreatedAt: l.Created, ExpiresAt: l.Expires, Current: id == current,
			})
		}
	}
	slices.SortFunc(list, func(a, b Login) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return list
}

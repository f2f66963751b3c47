package localapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"adit/internal/textfile"
)

const (
	cookieName   = "adit_session"
	codeLifetime = time.Minute
	maxCodes     = 32 // links that wait to be opened
	sessionLife  = 7 * 24 * time.Hour
	maxSignedOut = 1024
	// minBearer is the least number of characters in a Bearer token that guards against other
	// machines. On loopback, where adit is open without a token, a shorter one only causes a
	// warning.
	minBearer = 8
	// clockSet is how far the clock may be set back without signing out those who signed in before.
	clockSet = 24 * time.Hour
)

// logins is the Bearer guard, together with the cookies that replace the token in browsers. A
// cookie consists of its expiry and a random part, signed with a key derived from the Bearer token:
// it outlives the daemon, and becomes invalid with the token.
type logins struct {
	on     bool
	weak   bool              // it can be guessed
	bearer [sha256.Size]byte // hash, so that comparing tells nothing about the length
	key    []byte

	mu        sync.Mutex
	codes     map[[sha256.Size]byte]time.Time // hash of a link's code: when it ends
	signedOut map[string]time.Time            // cookie: when it would have ended, however the clock is set
}

func newLogins(token string) *logins {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("adit local API session cookie, version 1"))
	return &logins{
		on:        token != "",
		weak:      token != "" && len(token) < minBearer,
		bearer:    sha256.Sum256([]byte(token)),
		key:       mac.Sum(nil),
		codes:     make(map[[sha256.Size]byte]time.Time),
		signedOut: make(map[string]time.Time),
	}
}

func readBearerFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("local_api.bearer_token_file: %w; name a file that adit can read, with the token in it", err)
	}
	text, err := textfile.Of(b)
	if err != nil {
		return "", fmt.Errorf("local_api.bearer_token_file: %s: %w", path, err)
	}
	token := strings.TrimSpace(text)
	if token == "" || len(token) > 4096 || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("local_api.bearer_token_file: %s must hold one token and nothing else", path)
	}
	return token, nil
}

// open reports whether path may be requested without a token: the health probe, what a browser
// loads before it can sign in, and signing in itself.
func (l *logins) open(r *http.Request) bool {
	if r.URL.Path == HealthPath || r.URL.Path == Prefix+"/session" && r.Method == http.MethodPost {
		return true
	}
	return !isAPI(r.URL.Path)
}

// check refuses a request that has neither the Bearer token nor a cookie.
func (l *logins) check(r *http.Request) error {
	if !l.on || l.open(r) {
		return nil
	}
	if auth := r.Header.Values("Authorization"); len(auth) > 0 {
		scheme, token, _ := strings.Cut(auth[0], " ")
		sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
		match := subtle.ConstantTimeCompare(sum[:], l.bearer[:]) == 1
		if len(auth) == 1 && strings.EqualFold(scheme, "Bearer") && match {
			return nil
		}
		return unauthorized("the Bearer token is wrong")
	}
	if cookie, err := r.Cookie(cookieName); err == nil && ownPage(r) {
		if _, ok := l.session(cookie.Value); ok {
			return nil
		}
	}
	return unauthorized("this API asks for a Bearer token; in a browser, open the page with `adit open`")
}

// ownPage reports whether a cookie may count: an allowed origin has to send the Bearer token, and
// pages on other ports of this host share its cookies.
func ownPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || ownOrigin(origin, r.Host)
}

func unauthorized(message string) error {
	return &problem{status: http.StatusUnauthorized, code: codeUnauthorized, message: message}
}

// newCode makes the code of a login link.
func (l *logins) newCode(now time.Time) (code string, expires time.Time) {
	code = rand.Text()
	expires = now.Add(codeLifetime)
	l.mu.Lock()
	defer l.mu.Unlock()
	var oldest [sha256.Size]byte
	first := time.Time{}
	for sum, end := range l.codes {
		if !now.Before(end) {
			delete(l.codes, sum)
		} else if first.IsZero() || end.Before(first) {
			oldest, first = sum, end
		}
	}
	if len(l.codes) >= maxCodes {
		delete(l.codes, oldest)
	}
	l.codes[sha256.Sum256([]byte(code))] = expires
	return code, expires
}

// redeem accepts a code, once, and returns a cookie's value.
func (l *logins) redeem(code string, now time.Time) (string, bool) {
	sum := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	expires, ok := l.codes[sum]
	delete(l.codes, sum)
	if !ok || !now.Before(expires) {
		return "", false
	}
	value := binary.BigEndian.AppendUint64(nil, uint64(now.Add(sessionLife).Unix()))
	value = append(value, rand.Text()...)
	return base64.RawURLEncoding.EncodeToString(append(value, l.sign(value)...)), true
}

func (l *logins) sign(value []byte) []byte {
	mac := hmac.New(sha256.New, l.key)
	mac.Write(value)
	return mac.Sum(nil)
}

// session returns when the cookie's session ends, if it has one.
func (l *logins) session(cookie string) (time.Time, bool) {
	if len(cookie) > 256 {
		return time.Time{}, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cookie)
	if err != nil || len(b) < 8+sha256.Size {
		return time.Time{}, false
	}
	value, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	end := time.Unix(int64(binary.BigEndian.Uint64(value)), 0)
	now := time.Now()
	// A session that would last longer than any does was made while the clock was wrong.
	if !hmac.Equal(mac, l.sign(value)) || !now.Before(end) || end.After(now.Add(sessionLife+clockSet)) {
		return time.Time{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, out := l.signedOut[cookie]
	return end, !out
}

// signOut invalidates a cookie, at least until the daemon ends.
func (l *logins) signOut(cookie string) {
	end, ok := l.session(cookie)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for old, ends := range l.signedOut {
		if len(l.signedOut) >= maxSignedOut || !time.Now().Before(ends) {
			delete(l.signedOut, old)
		}
	}
	l.signedOut[cookie] = time.Now().Add(time.Until(end))
}

func (s *Server) createLoginLink(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	var link struct {
		URL       string     `json:"url"`
		ExpiresAt *time.Time `json:"expires_at"`
	}
	link.URL = "http://" + r.Host + "/"
	if s.logins.on {
		code, expires := s.logins.newCode(time.Now())
		expires = expires.UTC().Truncate(time.Second)
		link.URL += "login#" + code
		link.ExpiresAt = &expires
	}
	return writeData(w, http.StatusCreated, link)
}

func (s *Server) createSession(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Code string `json:"code"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	if !ownPage(r) {
		return forbiddenOrigin(r.Header.Get("Origin"))
	}
	if s.logins.on {
		value, ok := s.logins.redeem(in.Code, time.Now())
		if !ok {
			return unauthorized("the link has been used or is too old; run `adit open` for a new one")
		}
		setCookie(w, value, int(sessionLife/time.Second))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request) error {
	if cookie, err := r.Cookie(cookieName); err == nil {
		s.logins.signOut(cookie.Value)
	}
	setCookie(w, "", -1)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func setCookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

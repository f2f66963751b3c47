// Package console is the relay's page and API for its operator, at
// console_listen: clients and their tokens, sessions, endpoints, policies and the
// access log. Who asks proves to be the operator by the admin token: programs
// send it as Bearer, people log in with it. What is asked for is done by the
// relay, behind the interface Relay.
package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Relay does what the operator asks. Errors that the operator is to read are *Error.
type Relay interface {
	Status() Status
	Clients() []Client
	CreateClient(ctx context.Context, name string, scope Scope) (NewToken, error)
	NewClientToken(ctx context.Context, name string, overlap time.Duration) (NewToken, error)
	DropClient(ctx context.Context, name string) error
	SessionList() []Session
	EndpointList() []Endpoint
	NodeList() []Node
	ClaimList() []Claim
	PolicyList() []Policy
	Policy(target string) (Policy, error)
	SetPolicy(ctx context.Context, target string, document []byte) (Policy, error)
	DeletePolicy(ctx context.Context, target string) error
	Explain(q Question) (Explanation, error)
	Metrics() string // as Prometheus reads them
	Backup(ctx context.Context) (any, error)
	Ready() string // why it should get no new visitors, or ""
	Operator
}

// Config is what a console works with.
type Config struct {
	Relay        Relay
	AdminToken   string
	AllowedHosts []string     // beside loopback names and addresses
	OpenMetrics  bool         // /metrics asks for no token
	Log          *slog.Logger // may be nil
}

const (
	maxBody      = 1 << 20
	sessionLife  = 12 * time.Hour
	maxLogins    = 64
	cookieName   = "adit_console"
	triesAtOnce  = 10
	triesAgain   = 6 * time.Second // for one more
	maxAddresses = 10_000
)

// Console is the handler of console_listen.
type Console struct {
	cfg   Config
	log   *slog.Logger
	token [sha256.Size]byte
	mux   *http.ServeMux
	cross *http.CrossOriginProtection
	live  atomic.Int32 // readers of live events

	mu     sync.Mutex
	logins map[[sha256.Size]byte]time.Time // cookie → end
	tries  map[netip.Addr]*try
}

type try struct {
	left float64
	at   time.Time
}

// New returns a console.
func New(cfg Config) *Console {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Console{
		cfg: cfg, log: cfg.Log, token: sha256.Sum256([]byte(cfg.AdminToken)), mux: http.NewServeMux(),
		cross: http.NewCrossOriginProtection(), logins: make(map[[sha256.Size]byte]time.Time), tries: make(map[netip.Addr]*try),
	}
	c.api()
	c.pages()
	return c
}

// ServeHTTP guards every request in this order: the name it is asked by, the
// page it comes from, who asks.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	if !c.hostAllowed(r.Host) {
		c.refuse(w, r, &Error{http.StatusForbidden, "forbidden_host", "this name is not one that the console answers to; add it to [console] allowed_hosts", ""})
		return
	}
	if c.cross.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "cross-site" && strings.HasPrefix(r.URL.Path, "/api/") {
		c.refuse(w, r, &Error{http.StatusForbidden, "forbidden_origin", "a page of another origin may not use the console", ""})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	c.mux.ServeHTTP(w, r)
}

// hostAllowed reports whether the Host header is loopback's, an address that
// this machine was reached at, or a configured name: a page that rebinds its own
// name to this machine is none of them.
func (c *Console) hostAllowed(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if strings.ContainsFunc(port, func(r rune) bool { return r < '0' || r > '9' }) {
			return false
		}
		name = h
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || slices.ContainsFunc(c.cfg.AllowedHosts, func(a string) bool { return strings.EqualFold(a, name) }) {
		return true
	}
	_, err := netip.ParseAddr(name) // an address cannot be rebound
	return err == nil
}

// handle registers a route whose errors become answers.
func (c *Console) handle(pattern string, f func(http.ResponseWriter, *http.Request) error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			c.refuse(w, r, err)
		}
	})
}

// refuse is the one mapper of errors to answers and log lines.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &tooLarge):
		e = &Error{http.StatusRequestEntityTooLarge, "payload_too_large", "the body is larger than 1 MiB", ""}
	default:
		c.log.Error("console", "method", r.Method, "path", r.URL.Path, "error", err)
		e = &Error{http.StatusInternalServerError, "internal", "the relay could not do this; its log says why", ""}
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if e.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "10")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	json.NewEncoder(w).Encode(envelope{Error: e})
}

func write(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(envelope{Data: v})
}

// read reads a request's JSON strictly.
func read(r *http.Request, v any) error {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return &Error{http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be application/json", ""}
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	if err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			name = strings.Trim(name, `"`)
			return &Error{http.StatusBadRequest, "invalid_parameter", "there is no field " + name, name}
		}
		return &Error{http.StatusBadRequest, "invalid_json", "the body does not parse as JSON", ""}
	}
	if _, err := dec.Token(); err != io.EOF {
		return &Error{http.StatusBadRequest, "invalid_json", "something follows the JSON document", ""}
	}
	return nil
}

// isAdmin reports whether a secret is the admin token.
func (c *Console) isAdmin(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], c.token[:]) == 1
}

var (
	errUnauthorized = &Error{http.StatusUnauthorized, "unauthorized", "the admin token is missing or wrong", ""}
	errTries        = &Error{http.StatusTooManyRequests, "too_many_tries", "too many wrong tokens came from this address; wait a moment", ""}
)

// attempt checks a secret, and slows down an address that guesses.
func (c *Console) attempt(r *http.Request, secret string) error {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	addr, now := from.Addr(), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tries[addr]
	if t != nil {
		t.left = min(triesAtOnce, t.left+now.Sub(t.at).Seconds()/triesAgain.Seconds())
		t.at = now
		if t.left < 1 {
			return errTries
		}
	}
	if c.isAdmin(secret) {
		return nil
	}
	if t == nil {
		if len(c.tries) >= maxAddresses {
			clear(c.tries)
		}
		t = &try{left: triesAtOnce, at: now}
		c.tries[addr] = t
	}
	t.left--
	c.log.Warn("console: wrong admin token", "address", addr.String())
	return errUnauthorized
}

// admit lets in who has the admin token as Bearer, or is logged in.
func (c *Console) admit(r *http.Request) error {
	if auth := r.Header.Get("Authorization"); auth != "" {
		scheme, secret, _ := strings.Cut(auth, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return errUnauthorized
		}
		return c.attempt(r, strings.TrimSpace(secret))
	}
	if c.loggedIn(r) {
		return nil
	}
	return errUnauthorized
}

func (c *Console) loggedIn(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	end, ok := c.logins[sha256.Sum256([]byte(cookie.Value))]
	return ok && time.Now().Before(end)
}

// logIn makes a login and its cookie.
func (c *Console) logIn(w http.ResponseWriter, r *http.Request) {
	secret, now := rand.Text(), time.Now()
	c.mu.Lock()
	for id, end := range c.logins {
		if now.After(end) || len(c.logins) >= maxLogins {
			delete(c.logins, id)
		}
	}
	c.logins[sha256.Sum256([]byte(secret))] = now.Add(sessionLife)
	c.mu.Unlock()
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: secret, Path: "/", MaxAge: int(sessionLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

func (c *Console) logOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		c.mu.Lock()
		delete(c.logins, sha256.Sum256([]byte(cookie.Value)))
		c.mu.Unlock()
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// Package console is the relay's page and API for its operator, at
// console_listen: clients and their tokens, sessions, endpoints, policies, the
// access log and the audit log. People sign in with an account, or with the admin
// token; programs send an API token, or the admin token, as Bearer. What is asked
// for is done by the relay, behind the interface Relay; what the console itself
// keeps, accounts and the like, is behind Keeper.
package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
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

	"adit/internal/guess"
	"adit/internal/webfiles"
	"adit/tunnel/relay/store/bucket"
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
	ReleaseClaim(ctx context.Context, target string) error
	PolicyList() []Policy
	Policy(target string) (Policy, error)
	SetPolicy(ctx context.Context, target string, document []byte, e Expected) (Policy, error)
	DeletePolicy(ctx context.Context, target string, e Expected) error
	Explain(q Question) (Explanation, error)
	Counters() Counters
	Metrics() string // as Prometheus reads them
	Backup(ctx context.Context) (any, error)
	Ready() string // why it should get no new visitors, or ""
	StoreCondition() string
	Operator
}

// Config is what a console works with.
type Config struct {
	Relay        Relay
	Keeper       Keeper
	Page         fs.FS // the console's page; may be nil
	AdminToken   string
	SetupCode    string   // makes the first account; "" if there is one
	SetupDone    func()   // is called when there is one; may be nil
	AllowedHosts []string // beside loopback names and addresses
	OpenMetrics  bool     // /metrics asks for no token
	// Trusted are proxies in front, whose X-Forwarded-For says who asks.
	Trusted []netip.Prefix
	Log     *slog.Logger // may be nil

	hashMemory uint32 // KiB; tests hurry
}

const maxBody = 1 << 20

// Console is the handler of console_listen.
type Console struct {
	cfg       Config
	log       *slog.Logger
	token     [sha256.Size]byte
	adminMark string // of the logins that the admin token makes
	mux       *http.ServeMux
	page      *webfiles.Files
	cross     *http.CrossOriginProtection
	limits    *guess.Pace
	refusals  *refusals
	hashes    hashes
	history   history
	setupMu   sync.Mutex
	leaving   sync.Mutex   // see oneLess
	live      atomic.Int32 // readers of live events

	mu   sync.Mutex
	used map[string]time.Time // hash of an API token: when it was used last
}

// New returns a console.
func New(cfg Config) (*Console, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Console{
		cfg: cfg, log: cfg.Log, token: sha256.Sum256([]byte(cfg.AdminToken)), adminMark: adminMarkOf(cfg.AdminToken), mux: http.NewServeMux(),
		cross: http.NewCrossOriginProtection(), limits: new(guess.Pace), refusals: newRefusals(),
		hashes: hashes{make(chan struct{}, hashesAtOnce), cmp.Or(cfg.hashMemory, argonMemory)}, used: make(map[string]time.Time),
	}
	var err error
	if c.page, err = webfiles.Read(cfg.Page); err != nil {
		return nil, err
	}
	c.page.Alias("/", "/index.html")
	c.api()
	c.mux.HandleFunc("/", c.servePage)
	return c, nil
}

// servePage answers with the console's page and what belongs to it. None of it
// is secret: what the page shows, it asks the API for.
func (c *Console) servePage(w http.ResponseWriter, r *http.Request) {
	path := c.page.Page(r)
	switch {
	case path == "":
		c.refuse(w, r, &Error{http.StatusNotFound, "not_found", "there is nothing at this path", ""})
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		c.refuse(w, r, &Error{http.StatusMethodNotAllowed, "method_not_allowed", "this path takes GET, HEAD", ""})
	default:
		c.page.Serve(w, r, path)
	}
}

// Secure sets what every answer at console_listen carries.
func Secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// ServeHTTP guards every request in this order: the name it is asked by, the
// page it comes from, who asks.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	Secure(w.Header())
	if !c.hostAllowed(r.Host) {
		c.refuse(w, r, &Error{http.StatusForbidden, "forbidden_host", "this name is not one that the console answers to; add it to [console] allowed_hosts", ""})
		return
	}
	if c.cross.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "cross-site" && strings.HasPrefix(r.URL.Path, "/api/") {
		c.refuse(w, r, &Error{http.StatusForbidden, "forbidden_origin", "a page of another origin may not use the console", ""})
		return
	}
	r.RemoteAddr = c.visitorOf(r)
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
	case errors.Is(err, bucket.ErrConflict):
		e = errBusy
	case errors.Is(err, bucket.ErrLost):
		e = &Error{http.StatusServiceUnavailable, "unavailable", "NATS has lost what the relay kept there: this node goes on with what it knows, and cannot change anything until it is restarted after a restore", ""}
	case bucket.IsFull(err):
		e = &Error{http.StatusServiceUnavailable, "unavailable", "NATS is full; free some space on its servers, or raise the limits of the relay's account or streams there", ""}
	case bucket.IsAway(err):
		c.log.Warn("console: the store did not answer", "method", r.Method, "path", r.URL.Path, "error", err)
		e = &Error{http.StatusServiceUnavailable, "unavailable", "the store did not answer in time; try again in a moment", ""}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			e.Message = "the store did not answer in time, so it is not known whether this was done, or it may still be done; do it again to be sure"
		}
	default:
		c.log.Error("console", "method", r.Method, "path", r.URL.Path, "error", err)
		e = &Error{http.StatusInternalServerError, "internal", "the relay could not do this; its log says why", ""}
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
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

// Package console serves the operator's page and API at console_listen: clients and their
// tokens, sessions, endpoints, policies, the access log and the audit log. People sign in
// with an account or with the admin token; programs send an API token or the admin token
// as a Bearer token. The relay does the work behind the interface Relay. The console's
// own data, such as accounts, is behind Keeper.
package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
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

// Relay does what the operator asks. Errors meant for the operator are *Error.
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
	Metrics() string // in the format of Prometheus
	Backup(ctx context.Context) (any, error)
	Ready() string // why it should get no new visitors, or ""
	StoreCondition() string
	Operator
}

// Config contains what a console works with.
type Config struct {
	Relay        Relay
	Keeper       Keeper
	Page         fs.FS // the console's page; may be nil
	AdminToken   string
	SetupCode    string   // creates the first account; "" if there is one already
	SetupDone    func()   // called when the first account exists; may be nil
	AllowedHosts []string // in addition to loopback names and addresses
	OpenMetrics  bool     // /metrics requires no token
	// Trusted lists the proxies in front, whose X-Forwarded-For says who makes a request.
	Trusted []netip.Prefix
	Log     *slog.Logger // may be nil

	hashMemory uint32 // KiB; tests reduce it
}

const maxBody = 1 << 20

// Console is the handler of console_listen.
type Console struct {
	cfg       Config
	log       *slog.Logger
	token     [sha256.Size]byte
	adminMark string // of the logins made with the admin token
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
	used map[string]time.Time // hash of an API token: when it was last used
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

// servePage answers with the console's page and its assets. None of it is secret: what
// the page shows comes from the API.
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

// Secure sets the headers that every answer at console_listen carries.
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

// ServeHTTP checks every request in this order: the host name that it uses, the page that
// it comes from, and who makes it.
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

// hostAllowed reports whether the Host header is a loopback name, an address that this
// machine was reached at, or a configured name. A page that rebinds its own name to this
// machine matches none of them.
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

// refuse is the only place where errors are mapped to answers and log lines.
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
		if c.cfg.Relay.StoreCondition() == "full" {
			e.Message = "the relay's store is full; free some space on the disk of its data folder or on its NATS servers, then do this again to be sure"
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

// Package localapi is the daemon's HTTP face on this machine: the Web UI, the API under /api/v1/,
// the health probe and the metrics, on one listener and behind one set of guards. It holds no
// state: the agent publishes snapshots, and this package serves them. openapi.yaml describes all of
// it.
package localapi

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"adit/internal/envelope"
	"adit/internal/logring"
	"adit/tunnel/agent/diagnosis"
)

// Paths that other programs rely on.
const (
	Prefix     = "/api/v1"
	HealthPath = "/healthz"
	// DefaultListen is where the daemon listens by default.
	DefaultListen = "127.0.0.1:37271"
)

// Limits on what a stranger can send or hold.
const (
	maxBody        = 1 << 20
	maxDrain       = 8 << 20 // read and thrown away of a body over maxBody
	maxDepth       = 32
	maxHeader      = 32 << 10
	maxConnections = 1000
	maxStreams     = 256 // of each kind

	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	// eventTimeout is how long writing one event may take before its reader counts as gone.
	eventTimeout = 30 * time.Second
	// controlTimeout bounds operations that wait for the relay. It is above the 15 s that the agent
	// itself gives the relay, because the agent's error is more helpful.
	controlTimeout = 20 * time.Second
	// shutdownTimeout is how long responses in progress may take when the daemon ends.
	shutdownTimeout = 5 * time.Second
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI returns the document that describes this API.
func OpenAPI() []byte { return openAPI }

// Config configures a Server. Agent and Events are required.
type Config struct {
	// Agent carries out what the API asks for.
	Agent Agent
	// Events begins a feed after the event with the id after; if nil, with the next event.
	Events func(after *uint64) Feed
	// Logs returns the newest limit lines of the daemon's log at or above min that came after
	// since, oldest first. If nil, there are none.
	Logs func(min slog.Level, since time.Time, limit int) []logring.Line
	// Configuration returns the current configuration. If nil, none is shown.
	Configuration func() Configuration
	// Checks adds findings about the daemon's surroundings to the agent's own. If nil, there are
	// none.
	Checks func(context.Context) []diagnosis.Check
	// Frontend is the built Web UI. If nil, a page is served that says that it is missing.
	Frontend fs.FS
	// Logger logs faults; if nil, nothing is logged.
	Logger *slog.Logger
	// Version is adit's version.
	Version string

	// BearerToken enables the Bearer guard. If BearerTokenFile is set, New reads the token from
	// there instead.
	BearerToken, BearerTokenFile string
	// AllowedOrigins are the web consoles that may call the API from a browser, as
	// scheme://host[:port].
	AllowedOrigins []string
	// AllowedHosts are further names accepted in the Host header, as name or name:port.
	AllowedHosts []string
}

// Server serves the local API.
type Server struct {
	cfg     Config
	log     *slog.Logger
	guard   *guard
	logins  *logins
	handler http.Handler
	counts  *counts
	conns   *connections
	bodies  bodies
	streams streams
}

// Check returns the error that New would return about access to the API: the Bearer token's file
// and the lists of origins and hosts.
func (c Config) Check() error {
	_, err := c.guards()
	return err
}

// guards reads the Bearer token and makes the guard.
func (c *Config) guards() (*guard, error) {
	if c.BearerTokenFile != "" {
		token, err := readBearerFile(c.BearerTokenFile)
		if err != nil {
			return nil, err
		}
		c.BearerToken = token
	}
	return newGuard(c.AllowedHosts, c.AllowedOrigins)
}

// New checks cfg. It starts nothing.
func New(cfg Config) (*Server, error) {
	if cfg.Agent == nil || cfg.Events == nil {
		return nil, errors.New("local API: agent and events are required")
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g, err := cfg.guards()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:    cfg,
		log:    log,
		guard:  g,
		logins: newLogins(cfg.BearerToken),
		counts: new(counts),
		conns:  newConnections(maxConnections),
		bodies: make(bodies, maxLarge),
	}
	ui, err := newStatic(cfg.Frontend)
	if err != nil {
		return nil, err
	}
	s.handler = s.routes(ui)
	if s.logins.weak {
		log.Warn("the Bearer token can be guessed", "characters", len(cfg.BearerToken), "wanted", minBearer)
	}
	return s, nil
}

// Serve answers on ln until ctx ends, and closes ln. Beyond loopback, it refuses to serve without a
// Bearer token, or with one that can be guessed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer ln.Close()
	addr, err := s.MayListen(ln.Addr())
	if err != nil {
		return err
	}
	streaming, endStreams := context.WithCancel(ctx)
	defer endStreams()
	server := &http.Server{
		Handler:           s.guarded(addr),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * must pass the guards too.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnState:                    s.conns.changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		BaseContext: func(net.Listener) context.Context {
			// Responses in progress outlive ctx by shutdownTimeout; event streams end with it.
			return context.WithValue(context.WithoutCancel(ctx), streamKey{}, streaming)
		},
	}
	ended := make(chan error, 1)
	always := http.Header{}
	secure(always)
	go func() { ended <- envelope.Serve(server, ln, always) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the local API on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	endStreams()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		server.Close()
	}
	<-ended //nolint:errcheck // Shutdown makes it http.ErrServerClosed
	return nil
}

type (
	connKey   struct{} // the request's net.Conn
	streamKey struct{} // the context that ends event streams
)

// CheckListen returns why the local API must not listen on addr, or nil if it may: beyond loopback
// it needs a Bearer token.
func CheckListen(addr netip.AddrPort, bearer bool) error {
	if addr.Addr().Unmap().IsLoopback() || bearer {
		return nil
	}
	where := addr.String()
	if addr.Addr().IsUnspecified() { // 0.0.0.0 may have become [::]
		where = fmt.Sprintf("all addresses, port %d,", addr.Port())
	}
	return fmt.Errorf("listening at %s would open the local API to other machines: set [local_api] bearer_token in adit.toml first, or listen on 127.0.0.1", where)
}

// MayListen returns listen in the form that Serve needs, or why the server must not listen there.
func (s *Server) MayListen(listen net.Addr) (netip.AddrPort, error) {
	addr, err := netip.ParseAddrPort(listen.String())
	if err != nil {
		return addr, fmt.Errorf("listen on %s: the local API needs a TCP address: %w", listen, err)
	}
	if err := CheckListen(addr, s.logins.on); err != nil {
		return addr, err
	}
	if s.logins.weak && !addr.Addr().Unmap().IsLoopback() {
		return addr, fmt.Errorf("listening on %s opens the local API to other machines, which can guess a Bearer token of fewer than %d characters: set [local_api] bearer_token in adit.toml to a longer one, or listen on 127.0.0.1", addr, minBearer)
	}
	return addr, nil
}

// guarded is the whole chain in front of the routes, for a listener at addr. The order is part of
// the promise: a caller that is turned away learns nothing more.
func (s *Server) guarded(addr netip.AddrPort) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			s.conns.serving(c)
		}
		rec := &recorder{ResponseWriter: w}
		secure(rec.Header())
		if err := s.admit(rec, r, addr); err != nil {
			s.refuse(rec, r, err)
		} else if preflight(r) {
			s.guard.answerPreflight(rec, r)
		} else if r.Body = http.MaxBytesReader(rec, r.Body, maxDrain); r.ContentLength > maxBody {
			s.refuse(rec, r, tooLarge(r)) // whatever the path and the method
		} else {
			body := s.bodies.bound(r.Body)
			defer body.release()
			r.Body = body
			s.handler.ServeHTTP(rec, r)
		}
		s.counts.add(r.Method, rec.status)
	})
}

// admit runs the guards in order.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, addr netip.AddrPort) error {
	if err := checkPeer(r.RemoteAddr, addr); err != nil {
		return err
	}
	if err := s.guard.checkHost(r, addr); err != nil {
		return err
	}
	if err := s.guard.checkOrigin(r); err != nil {
		return err
	}
	s.guard.allow(w.Header(), r)
	if preflight(r) {
		return nil
	}
	return s.logins.check(r)
}

// recorder remembers the status for the metrics.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController find the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Hijack hands over the connection, after a change of protocols.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.status = http.StatusSwitchingProtocols
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

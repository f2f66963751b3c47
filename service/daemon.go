package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/frontend"
	"adit/internal/buildinfo"
	"adit/internal/config"
	"adit/internal/discovery"
	"adit/internal/lean"
	"adit/internal/logring"
	"adit/internal/netwatch"
	"adit/internal/paths"
	"adit/internal/socketerr"
	"adit/localapi"
	"adit/tunnel/agent"
)

// Environment variables of the daemon.
const (
	envAuthToken     = "ADIT_AUTH_TOKEN"
	envAuthTokenFile = "ADIT_AUTH_TOKEN_FILE" // the same, in a file
	envClientID      = "ADIT_CLIENT_ID"
)

// configEvery is how long adit.toml must remain unchanged before a change takes effect, and how
// often the daemon checks it if the system does not report changes.
const configEvery = 3 * time.Second

// ringLines is how many lines of the log the local API shows.
const ringLines = 2000

// Daemon combines the parts of the daemon: state folder, agent, local API.
type Daemon struct {
	// HTTPListen is where the local API listens; it takes precedence over adit.toml. If neither is
	// set, 127.0.0.1:37271.
	HTTPListen string
	// ConfigDir contains adit.toml, StateDir is written by the daemon. StateDir is required.
	ConfigDir, StateDir string
	// AuthToken configures an unconfigured agent. If empty, ADIT_AUTH_TOKEN in the environment is
	// used, or the content of the file that ADIT_AUTH_TOKEN_FILE names.
	AuthToken string
	// Log receives the log. If nil, it is written as text to LogTo; if that is nil too, to standard
	// error.
	Log   *slog.Logger
	LogTo io.Writer
	// RunBy is the command that runs the daemon as a part of itself, such as "adit https". Empty if
	// the daemon runs by itself.
	RunBy string
	// Relay lists where a relay in the same process listens. No tunnel leads there.
	Relay []netip.AddrPort
	// Ready, if set, is called once the local API listens, with its address.
	Ready func(addr net.Addr)
	// ConfigEvery is how long adit.toml must remain unchanged before a change takes effect, and how
	// often the daemon checks it if the system does not report changes. If zero, 3 seconds.
	ConfigEvery time.Duration
}

// Run runs the daemon until ctx ends.
func (d Daemon) Run(ctx context.Context) error {
	lean.WithinLimit()
	watcher := config.NewWatcher(d.ConfigDir)
	file, err := config.Load(d.ConfigDir)
	if err != nil {
		return err
	}
	settings := newSettings(d, file)
	if settings.authToken, err = d.authToken(); err != nil {
		return err
	}
	ring, log := d.logging(settings)
	// Before the state is touched: a port that is taken usually means that a daemon is running
	// already.
	ln, err := listen(ctx, settings)
	if err != nil {
		return err
	}
	defer ln.Close()
	network := make(chan struct{}, 1)
	a, err := agent.New(agent.Config{
		StateDir: d.StateDir, Logger: log, Version: buildinfo.Get().Version, RunBy: d.RunBy,
		AuthToken: settings.authToken, ClientID: os.Getenv(envClientID),
		Transport: settings.transport(), Refuse: own{addrPort(ln.Addr()), d.Relay}.refuse, NetworkChanged: network,
		Inspect: settings.inspect(), Visitors: visitorsHere(), Unread: unreadHere(),
	})
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run adit as the user whose %s is, or name another folder with %s", err, d.StateDir, paths.EnvState)
	}
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }() // the lock ends with the process at the latest
	ring.Follow(func(l logring.Line) { a.Publish(agent.EventLog, l) })
	declared := &declared{daemon: d, agent: a, settings: settings, log: log, clash: make(chan struct{}, 1)}
	server, err := newServer(a, ring, declared, file, log)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path(), err)
	}
	if _, err := server.MayListen(ln.Addr()); err != nil {
		return err
	}
	defer d.announce(ln.Addr(), a.Status().StartedAt, log)()
	if path := file.OpenSecret(); path != "" {
		log.Warn("everybody at this machine may read the Bearer token", "file", path)
	}
	if path := file.OpenPasswords(); path != "" {
		log.Warn("everybody at this machine may read the password of a tunnel's visitors", "file", path)
	}
	log.Info("daemon started", "listen", ln.Addr().String(), "version", buildinfo.Get().Version, "state_dir", d.StateDir)
	if d.Ready != nil {
		d.Ready(ln.Addr())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return server.Serve(ctx, ln) })
	group.Go(func() error { return declared.run(ctx, file, watcher) })
	group.Go(func() error { return watchNetwork(ctx, network) })
	group.Go(func() error { lean.AfterStart(ctx); return nil })
	err = group.Wait()
	log.Info("daemon ended")
	return err
}

// logging sets up the daemon's log, and the part of it that the local API shows.
func (d Daemon) logging(s *settings) (*logring.Ring, *slog.Logger) {
	level, _ := logring.ParseLevel(s.logLevel)
	to := d.LogTo
	if to == nil {
		to = os.Stderr
	}
	next := slog.Handler(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	if d.Log != nil {
		next = d.Log.Handler()
	}
	ring := logring.New(ringLines, level, next)
	return ring, slog.New(ring.Handler())
}

// listen opens the local API's listener, if listening there is allowed.
func listen(ctx context.Context, s *settings) (net.Listener, error) {
	ln, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, listenError(ctx, s.listen, err)
	}
	if err := localapi.CheckListen(addrPort(ln.Addr()), s.bearer()); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

func newServer(a *agent.Agent, ring *logring.Ring, declared *declared, file *config.File, log *slog.Logger) (*localapi.Server, error) {
	return localapi.New(localapi.Config{
		Agent: a, Events: func(after *uint64) localapi.Feed { return a.Subscribe(after) },
		Logs: ring.Lines, Logger: log, Version: buildinfo.Get().Version,
		Frontend: frontend.AgentUI(), Configuration: declared.configuration,
		BearerToken: file.LocalAPI.BearerToken, BearerTokenFile: file.LocalAPI.BearerTokenFile,
		AllowedOrigins: file.LocalAPI.AllowedOrigins, AllowedHosts: file.LocalAPI.AllowedHosts,
	})
}

// announce writes where the daemon answers, for the programs on this machine; the function it
// returns takes that back.
func (d Daemon) announce(addr net.Addr, started time.Time, log *slog.Logger) (takeBack func()) {
	info := discovery.New(addr, started)
	if err := discovery.Write(d.StateDir, info); err != nil {
		// A full disk is no reason not to run: the tunnels may be the only way in for those who are
		// to make room.
		log.Warn("programs at this machine will look for the daemon at its default address", "error", err)
	}
	return func() {
		if err := discovery.Remove(d.StateDir, info); err != nil {
			log.Warn("runtime.json not removed", "error", err)
		}
	}
}

// watchNetwork signals changed on network changes and wake-ups, until ctx ends.
func watchNetwork(ctx context.Context, changed chan<- struct{}) error {
	w := netwatch.Watcher{Changed: func(netwatch.Change) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}}
	return w.Run(ctx)
}

// listenError explains what a failed listen usually means.
func listenError(ctx context.Context, addr string, err error) error {
	if errors.Is(err, socketerr.InUse) {
		return fmt.Errorf("listen on %s: the port is in use %s, or listen elsewhere, as with `adit start --http_listen 127.0.0.1:8181`", addr, occupant(ctx, addr))
	}
	if errors.Is(err, socketerr.NotAllowed) {
		return fmt.Errorf("listen on %s: the system does not allow that port, which is below 1024 or in a range that it reserves; listen elsewhere, as with `adit start --http_listen 127.0.0.1:8181`", addr)
	}
	if errors.Is(err, socketerr.NoAddress) {
		return fmt.Errorf("listen on %s: this machine has no such address; listen on one that it has, as with `adit start --http_listen 127.0.0.1:8181`", addr)
	}
	var malformed *net.AddrError
	if errors.As(err, &malformed) {
		return fmt.Errorf("http_listen: %q must be an address and a port, as 127.0.0.1:37271", addr)
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) {
		return fmt.Errorf("listen on %s: the name %s does not resolve; listen on an address of this machine, as with `adit start --http_listen 127.0.0.1:8181`", addr, unknown.Name)
	}
	return fmt.Errorf("listen on %s: %w", addr, err)
}

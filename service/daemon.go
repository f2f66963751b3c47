package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/frontend"
	"adit/internal/buildinfo"
	"adit/internal/config"
	"adit/internal/discovery"
	"adit/internal/lean"
	"adit/internal/logring"
	"adit/internal/netwatch"
	"adit/internal/socketerr"
	"adit/localapi"
	"adit/tunnel/agent"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/link"
)

// Environment variables of the daemon.
const (
	envAuthToken = "ADIT_AUTH_TOKEN"
	envClientID  = "ADIT_CLIENT_ID"
)

// configEvery is how long adit.toml has to stay the same until a change counts,
// and how often the daemon looks at it where the system does not tell.
const configEvery = 3 * time.Second

// ringLines is how much of the log the local API shows.
const ringLines = 2000

// Daemon is the composition of the daemon: state folder, agent, local API.
type Daemon struct {
	// HTTPListen is where the local API listens, before what adit.toml says. If
	// both are empty, 127.0.0.1:37271.
	HTTPListen string
	// ConfigDir has adit.toml, StateDir is machine-written. StateDir is required.
	ConfigDir, StateDir string
	// AuthToken configures an unconfigured agent. If empty, the environment's
	// ADIT_AUTH_TOKEN.
	AuthToken string
	// Log takes the log. If nil, it goes as text to LogTo; if that is nil too, to
	// standard error.
	Log   *slog.Logger
	LogTo io.Writer
	// Ready, if set, is called once the local API listens, with its address.
	Ready func(addr net.Addr)
	// ConfigEvery is how long adit.toml has to stay the same until a change
	// counts, and how often the daemon looks at it where the system does not tell
	// of changes. If zero, 3 seconds.
	ConfigEvery time.Duration
}

// Run runs the daemon until ctx ends.
func (d Daemon) Run(ctx context.Context) error {
	watcher := config.NewWatcher(d.ConfigDir)
	file, err := config.Load(d.ConfigDir)
	if err != nil {
		return err
	}
	settings := newSettings(d, file)
	level, _ := logring.ParseLevel(settings.logLevel)
	to := d.LogTo
	if to == nil {
		to = os.Stderr
	}
	next := slog.Handler(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	if d.Log != nil {
		next = d.Log.Handler()
	}
	ring := logring.New(ringLines, level, next)
	log := slog.New(ring.Handler())

	// Before the state is touched: a port that is taken most often means that a
	// daemon runs already.
	ln, err := net.Listen("tcp", settings.listen)
	if err != nil {
		return listenError(settings.listen, err)
	}
	defer ln.Close()
	own := ownAddress(ln.Addr())
	if err := localapi.CheckListen(netip.AddrPortFrom(own.ip, uint16(own.port)), settings.bearer()); err != nil {
		return err
	}
	network := make(chan struct{}, 1)
	version := buildinfo.Get().Version
	a, err := agent.New(agent.Config{
		StateDir: d.StateDir, Logger: log, Version: version,
		AuthToken: settings.authToken, ClientID: os.Getenv(envClientID),
		Transport: settings.transport(), Refuse: own.refuse, NetworkChanged: network,
		Inspect: settings.inspect(),
	})
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }() // the lock ends with the process at the latest
	ring.Follow(func(l logring.Line) { a.Publish(agent.EventLog, l) })
	declared := &declared{daemon: d, agent: a, settings: settings, log: log}
	server, err := localapi.New(localapi.Config{
		Agent: a, Events: func(after *uint64) localapi.Feed { return a.Subscribe(after) },
		Logs: ring.Lines, Logger: log, Version: version,
		Frontend: frontend.AgentUI(), Configuration: declared.configuration,
		BearerToken: file.LocalAPI.BearerToken, BearerTokenFile: file.LocalAPI.BearerTokenFile,
		AllowedOrigins: file.LocalAPI.AllowedOrigins, AllowedHosts: file.LocalAPI.AllowedHosts,
	})
	if err != nil {
		return err
	}
	info := discovery.New(ln.Addr(), a.Status().StartedAt)
	if err := discovery.Write(d.StateDir, info); err != nil {
		// A full disk is no reason to be away: the tunnels may be the only way in,
		// for whoever is to make room.
		log.Warn("programs at this machine will look for the daemon at its default address", "error", err)
	}
	defer func() {
		if err := discovery.Remove(d.StateDir, info); err != nil {
			log.Warn("runtime.json not removed", "error", err)
		}
	}()
	if path := file.OpenSecret(); path != "" {
		log.Warn("everybody at this machine may read the Bearer token", "file", path)
	}
	log.Info("daemon started", "listen", ln.Addr().String(), "version", version, "state_dir", d.StateDir)
	if d.Ready != nil {
		d.Ready(ln.Addr())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return server.Serve(ctx, ln) })
	group.Go(func() error { return declared.run(ctx, file, watcher) })
	group.Go(func() error {
		w := netwatch.Watcher{Changed: func(netwatch.Change) {
			select {
			case network <- struct{}{}:
			default:
			}
		}}
		return w.Run(ctx)
	})
	group.Go(func() error { lean.AfterStart(ctx); return nil })
	err = group.Wait()
	log.Info("daemon ended")
	return err
}

// listenError says what a failed listen most often means.
func listenError(addr string, err error) error {
	if errors.Is(err, socketerr.InUse) {
		return fmt.Errorf("listen on %s: the port is in use; adit may be running already (`adit status`), or listen elsewhere, as with --http_listen 127.0.0.1:8181", addr)
	}
	if errors.Is(err, socketerr.NotAllowed) {
		return fmt.Errorf("listen on %s: the system does not allow that port, which is below 1024 or in a range that it reserves; listen elsewhere, as with --http_listen 127.0.0.1:8181: %w", addr, err)
	}
	var malformed *net.AddrError
	if errors.As(err, &malformed) {
		return fmt.Errorf("http_listen: %q must be an address and a port, as 127.0.0.1:37271", addr)
	}
	return fmt.Errorf("listen on %s: %w", addr, err)
}

// own is the daemon's own listener.
type own struct {
	ip   netip.Addr
	port int
}

func ownAddress(addr net.Addr) own {
	ap := addr.(*net.TCPAddr).AddrPort()
	return own{ip: ap.Addr().Unmap(), port: int(ap.Port())}
}

// refuse keeps tunnels from publishing the local API.
func (o own) refuse(ip netip.Addr, port int) error {
	if port != o.port {
		return nil
	}
	if ip != o.ip && !ip.IsLoopback() && !(o.ip.IsUnspecified() && onThisMachine(ip)) {
		return nil
	}
	return errors.New("adit's own page and API listen there; publishing them would hand this machine's tunnels to strangers")
}

func onThisMachine(ip netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true // better refused than published
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if have, ok := netip.AddrFromSlice(n.IP); ok && have.Unmap() == ip {
				return true
			}
		}
	}
	return false
}

// settings are the values in force, and where they come from. But for declared
// tunnels they hold until the daemon starts again.
type settings struct {
	file                        *config.File
	listen, logLevel, authToken string
	listenFrom                  string
}

func newSettings(d Daemon, file *config.File) *settings {
	s := &settings{file: file, listen: localapi.DefaultListen, listenFrom: "default", logLevel: "info"}
	switch {
	case d.HTTPListen != "":
		s.listen, s.listenFrom = d.HTTPListen, "flag"
	case file.HTTPListen != "":
		s.listen, s.listenFrom = file.HTTPListen, "file"
	}
	if file.Log.Level != "" {
		s.logLevel = file.Log.Level
	}
	s.authToken = d.AuthToken
	if s.authToken == "" {
		s.authToken = strings.TrimSpace(os.Getenv(envAuthToken))
	}
	return s
}

func (s *settings) bearer() bool {
	return s.file.LocalAPI.BearerToken != "" || s.file.LocalAPI.BearerTokenFile != ""
}

func (s *settings) transport() link.Transport {
	switch s.file.Session.Transport {
	case "dtls":
		return link.DTLS
	case "tls":
		return link.TLS
	}
	return link.Auto
}

func (s *settings) inspect() inspect.Limits {
	in := s.file.Inspector
	if in.Enabled != nil && !*in.Enabled {
		return inspect.Limits{Memory: -1}
	}
	return inspect.Limits{Memory: in.MemoryMiB << 20, Body: in.BodyKiB << 10}
}

// list shows the settings; of secrets only that there is one.
func (s *settings) list(a *agent.Agent) []localapi.Setting {
	from := func(table, key string) string {
		if s.file.Sets(table, key) {
			return "file"
		}
		return "default"
	}
	or := func(v, other string) string {
		if v == "" {
			return other
		}
		return v
	}
	f, limits := s.file, s.inspect()
	enabled := limits.Memory >= 0
	memory, body := f.Inspector.MemoryMiB, f.Inspector.BodyKiB
	if memory == 0 {
		memory = 64
	}
	if body == 0 {
		body = 512
	}
	out := []localapi.Setting{
		{Key: "http_listen", Value: s.listen, Source: s.listenFrom},
		{Key: "local_api.bearer_token", Value: secretHint(f.LocalAPI.BearerToken != ""), Source: from("local_api", "bearer_token"), Secret: true},
		{Key: "local_api.bearer_token_file", Value: f.LocalAPI.BearerTokenFile, Source: from("local_api", "bearer_token_file")},
		{Key: "local_api.allowed_origins", Value: orEmpty(f.LocalAPI.AllowedOrigins), Source: from("local_api", "allowed_origins")},
		{Key: "local_api.allowed_hosts", Value: orEmpty(f.LocalAPI.AllowedHosts), Source: from("local_api", "allowed_hosts")},
		{Key: "session.transport", Value: or(f.Session.Transport, "auto"), Source: from("session", "transport")},
		{Key: "inspector.enabled", Value: enabled, Source: from("inspector", "enabled")},
		{Key: "inspector.memory_mib", Value: memory, Source: from("inspector", "memory_mib")},
		{Key: "inspector.body_kib", Value: body, Source: from("inspector", "body_kib")},
		{Key: "log.level", Value: s.logLevel, Source: from("log", "level")},
	}
	auth := a.Auth()
	if auth.Configured {
		out = append(out,
			localapi.Setting{Key: "auth_token", Value: auth.TokenHint, Source: "state", Secret: true},
			localapi.Setting{Key: "relay", Value: auth.Relay, Source: "state"})
	}
	return out
}

func secretHint(set bool) string {
	if set {
		return "set"
	}
	return ""
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

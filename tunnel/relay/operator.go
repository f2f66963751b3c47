package relay

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"adit/frontend"
	"adit/internal/atomicfile"
	"adit/internal/discovery"
	"adit/internal/envelope"
	"adit/internal/monotime"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store"
)

// Names in the data folder.
const (
	AdminTokenFile = "admin_token"
	RuntimeFile    = "relay-runtime.json"
)

const adminPrefix = "adit_admin_"

// Runtime is where a running relay's admin API is, for commands on its machine.
type Runtime struct {
	ConsoleURL string    `json:"console_url"`
	TokenFile  string    `json:"token_file"`
	PID        int       `json:"pid"`
	StartedAt  time.Time `json:"started_at"`
}

// ReadRuntime reads the file that a running relay keeps in its data folder.
func ReadRuntime(dataDir string) (Runtime, error) {
	var info Runtime
	data, err := os.ReadFile(filepath.Join(dataDir, RuntimeFile))
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return info, fmt.Errorf("read %s: %w", RuntimeFile, err)
	}
	return info, nil
}

// openConsole makes or reads the admin token and sets the console up.
func (r *Relay) openConsole(context.Context) error {
	path := filepath.Join(r.cfg.DataDir, AdminTokenFile)
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		r.admin = strings.TrimSpace(string(data))
	case errors.Is(err, fs.ErrNotExist):
	default:
		return fmt.Errorf("read the admin token: %w", err)
	}
	if r.admin == "" {
		var secret [32]byte
		rand.Read(secret[:])
		r.admin = adminPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
		if err := atomicfile.Write(path, []byte(r.admin+"\n"), 0o600); err != nil {
			return fmt.Errorf("write the admin token: %w", err)
		}
	} else if len(r.admin) < 16 {
		return fmt.Errorf("read the admin token: %s holds fewer than 16 characters; remove it, and the relay makes a new one", path)
	}
	if err := r.openSetup(); err != nil {
		return err
	}
	r.handler, err = console.New(console.Config{
		Relay: operator{r}, Keeper: r.store.Operators, Page: frontend.Console(),
		AdminToken: r.admin, SetupCode: r.setup, SetupDone: r.setupDone,
		AllowedHosts: r.cfg.Console.AllowedHosts, OpenMetrics: r.cfg.Console.OpenMetrics, Trusted: r.cfg.Trusted(), Log: r.log,
	})
	return err
}

// publish writes the file that commands on this machine find the relay by.
func (r *Relay) publish() (remove func(), err error) {
	path := filepath.Join(r.cfg.DataDir, RuntimeFile)
	info := Runtime{
		ConsoleURL: "http://" + discovery.ConnectAddr(r.page.Addr().String()),
		TokenFile:  filepath.Join(r.cfg.DataDir, AdminTokenFile), PID: os.Getpid(), StartedAt: monotime.Wall(r.started),
	}
	data, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, append(data, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("write %s: %w", RuntimeFile, err)
	}
	return func() { os.Remove(path) }, nil
}

// serveConsole serves until ctx ends.
func (r *Relay) serveConsole(ctx context.Context) error {
	server := &http.Server{
		Handler: r.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog:                     slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
		DisableGeneralOptionsHandler: true, // OPTIONS * passes the guards, too
	}
	always := http.Header{}
	console.Secure(always)
	done := make(chan error, 1)
	r.tasks.Go(func() { done <- envelope.Serve(server, r.page, always) })
	select {
	case err := <-done:
		return fmt.Errorf("serve the console: %w", err)
	case <-ctx.Done():
	}
	short, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if server.Shutdown(short) != nil {
		server.Close()
	}
	return nil
}

// operator is the relay as its console sees it.
type operator struct{ *Relay }

func bad(status int, code, field, format string, args ...any) error {
	return &console.Error{Status: status, Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

func (o operator) Status() console.Status {
	o.mu.Lock()
	draining, sessions := o.draining, len(o.sessions)
	o.mu.Unlock()
	s := console.Status{
		State: "ok", Version: o.opts.Version, Node: o.node, Domain: o.cfg.Domain, StartedAt: monotime.Wall(o.started),
		TunnelListen: o.Addrs().Tunnel, EdgeHTTP: o.Addrs().HTTP, EdgeHTTPS: o.Addrs().HTTPS, Console: o.Addrs().Console,
		CAFile: o.CAFile(), GeoDatabase: o.geo.Database() != nil,
		Sessions: sessions, Endpoints: len(o.edge.Endpoints()), Claims: len(o.store.Claims.List()),
	}
	if draining {
		s.State = "draining"
	}
	for _, c := range o.store.Clients.List() {
		if c.Active() {
			s.Clients++
		}
	}
	return s
}

func (o operator) SessionList() []console.Session {
	list := []console.Session{}
	for _, s := range o.sessionList() {
		stats := s.link.Stats()
		s.mu.Lock()
		v := console.Session{
			ID: s.id, Client: s.client.Name, ClientID: s.client.ID, Instance: s.hello.Instance,
			Address: s.link.RemoteAddr().String(), Transport: string(s.link.Transport()),
			Version: s.hello.Version, OS: s.hello.OS, Arch: s.hello.Arch, Hostname: s.hello.Hostname, Since: monotime.Wall(s.since),
			RTT: float64(stats.RTT.Microseconds()) / 1000, Tunnels: len(s.tunnels),
			BytesSent: stats.BytesSent, BytesReceived: stats.BytesReceived, Errors: slices.Clone(s.errors),
		}
		s.mu.Unlock()
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b console.Session) int { return a.Since.Compare(b.Since) })
	return list
}

func (o operator) EndpointList() []console.Endpoint {
	names := o.clientNames()
	list := []console.Endpoint{}
	for _, ep := range o.edge.Endpoints() {
		c := ep.Counters()
		v := console.Endpoint{
			ID: ep.ID(), Target: shown(ep.Target), Type: ep.Type, Mode: ep.Mode, PublicURL: o.publicURL(ep.Face),
			Clients: []string{}, Since: monotime.Wall(ep.Since), Policy: o.policies.Get(ep.Target) != nil,
			Connections: console.Connections{Open: c.Open, Total: c.Total}, Bytes: console.Bytes{In: c.BytesIn, Out: c.BytesOut},
		}
		for _, b := range ep.Backends() {
			v.Agents++
			if name := names[b.Agent.ClientID]; !slices.Contains(v.Clients, name) {
				v.Clients = append(v.Clients, name)
			}
		}
		list = append(list, v)
	}
	return list
}

func (r *Relay) clientNames() map[string]string {
	names := map[string]string{}
	for _, c := range r.store.Clients.List() {
		names[c.ID] = c.Name
	}
	return names
}

// shown is a claim's target as the operator writes it.
func shown(target string) string {
	if name := store.DomainOf(target); name != "" {
		return name
	}
	return target
}

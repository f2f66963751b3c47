package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"adit/frontend"
	"adit/internal/discovery"
	"adit/internal/envelope"
	"adit/internal/monotime"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/store"
)

// openConsole makes or reads the admin token and sets the console up.
func (r *Relay) openConsole(context.Context) error {
	var err error
	if r.admin, err = datadir.AdminToken(r.cfg.DataDir); err != nil {
		return err
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
	return datadir.WriteRuntime(r.cfg.DataDir, datadir.Runtime{
		ConsoleURL: "http://" + discovery.ConnectAddr(r.page.Addr().String()),
		TokenFile:  filepath.Join(r.cfg.DataDir, datadir.AdminTokenFile), PID: os.Getpid(), StartedAt: monotime.Wall(r.started),
	})
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
		Sessions: sessions, Claims: o.store.Claims.Count(),
	}
	for _, n := range o.edge.Served() {
		s.Endpoints += n
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
			Clients: []string{}, Visitors: []string{}, Since: monotime.Wall(ep.Since), Policy: o.policies.Get(ep.Target) != nil,
			Connections: console.Connections{Open: c.Open, Total: c.Total}, Bytes: console.Bytes{In: c.BytesIn, Out: c.BytesOut},
		}
		for _, b := range ep.Backends() {
			v.Agents++
			if name := names[b.Agent.ClientID]; !slices.Contains(v.Clients, name) {
				v.Clients = append(v.Clients, name)
			}
			for _, name := range b.Visitors {
				if !slices.Contains(v.Visitors, name) {
					v.Visitors = append(v.Visitors, name)
				}
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
	if client, name, ok := store.PrivateOf(target); ok {
		return client + "/" + name
	}
	return target
}

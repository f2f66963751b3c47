package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"adit/frontend"
	"adit/internal/discovery"
	"adit/internal/envelope"
	"adit/internal/monotime"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/metrics"
	"adit/tunnel/relay/operator"
	"adit/tunnel/relay/signin"
)

// openConsole creates or reads the admin token and sets up the console.
func (r *Relay) openConsole(context.Context) error {
	var err error
	if r.admin, err = datadir.AdminToken(r.cfg.DataDir); err != nil {
		return err
	}
	if err := r.openSetup(); err != nil {
		return err
	}
	r.handler, err = console.New(console.Config{
		Relay: r.operator(), Keeper: r.store.Operators, Page: frontend.Console(),
		AdminToken: r.admin, SetupCode: r.setup, SetupDone: r.setupDone,
		AllowedHosts: r.cfg.Console.AllowedHosts, OpenMetrics: r.cfg.Console.OpenMetrics, Trusted: r.cfg.Trusted(), Log: r.log,
	})
	return err
}

// publish writes the file through which commands on this machine find the relay.
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
		DisableGeneralOptionsHandler: true, // OPTIONS * must pass the guards, too
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

// openSetup creates or reads the set-up code, or removes its file if the console has an
// account.
func (r *Relay) openSetup() (err error) {
	if _, _, done := r.store.Operators.Get("setup"); done {
		if err := datadir.RemoveSetupCode(r.cfg.DataDir); err != nil {
			return fmt.Errorf("remove the set-up code: %w", err)
		}
		return nil
	}
	r.setup, err = datadir.SetupCode(r.cfg.DataDir)
	return err
}

// SetupCode returns the code that creates the console's first administrator, or "" if
// there is one already.
func (r *Relay) SetupCode() string { return r.setup }

// setupDone removes the set-up code.
func (r *Relay) setupDone() {
	if err := datadir.RemoveSetupCode(r.cfg.DataDir); err != nil {
		r.log.Warn("the set-up code's file is left behind; it is worth nothing any more", "error", err)
	}
}

// operator returns what answers the console's requests.
func (r *Relay) operator() *operator.Operator {
	addrs := r.Addrs()
	return operator.New(operator.Config{
		Relay: view{r}, Settings: r.cfg, Version: r.opts.Version, Node: r.node, Started: r.started,
		Addrs: operator.Addrs(addrs), CAFile: r.CAFile(), Host: r.publicHost(), AdminToken: r.admin,
		Store: r.store, Edge: r.edge, Clients: r.Clients(), Names: r.names, Policies: r.book,
		Access: r.access, Ledger: r.ledger, Sinks: r.sinks, Notes: r.notes, Accounts: r.accounts, Proofs: r.records,
		Geo: r.geo, SignIn: r.signIn, CallbackURL: signin.CallbackURL(r.signInOrigin(r.edge.HTTPSAddr())),
		Figures: metrics.Sources{
			Version: r.opts.Version, Started: r.started, Counts: &r.counts, Agents: r.listener, Edge: r.edge,
			Store: r.store, Access: r.access, Ledger: r.ledger, Sessions: r.sessionsByTransport,
			Unnamed:         func() (int, uint64) { return r.strangers.open(), r.strangers.turnedAway.Load() },
			CertificatesEnd: r.certificatesEnd,
		},
		PublicURL: r.publicURL, Certificate: r.certificateOf, Log: r.log,
	})
}

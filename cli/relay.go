package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"adit/internal/buildinfo"
	"adit/internal/discovery"
	"adit/internal/lean"
	"adit/internal/paths"
	"adit/tunnel/relay"
)

func relayCommand(env *Env) *cobra.Command {
	return group("relay", "Run a relay, and look after a running one", `Run a relay, the server that agents connect to, and look after one.

All but start and restore speak to the running relay. They find it by its data
folder; ADIT_RELAY_ADMIN_URL and ADIT_RELAY_ADMIN_TOKEN point them at one
elsewhere.`,
		relayStartCommand(env), relayStatusCommand(env), relayNodesCommand(env), relayClientCommand(env), relayPolicyCommand(env), relayAccessCommand(env),
		relayAuditCommand(env), relaySinkCommand(env), relayDomainsCommand(env),
		relayBackupCommand(env), relayRestoreCommand(env))
}

func relayStartCommand(env *Env) *cobra.Command {
	var file string
	flags := relay.Defaults()
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run a relay in the foreground",
		Long: `Run a relay in the foreground, until Ctrl-C or SIGTERM.

Its configuration is relay.toml in adit's configuration folder, or the file that
--config names; flags override it. Only domain has no default.`,
		Example: `  adit relay start --domain tunnel.example.com
  adit relay start --config /etc/adit/relay.toml`,
		Args: args(0, 0, ""),
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file (default relay.toml in the configuration folder, if it is there)")
	texts := []struct {
		name string
		at   *string
		of   func(*relay.Config) *string
		help string
	}{
		{"domain", &flags.Domain, func(c *relay.Config) *string { return &c.Domain }, "name under which tunnels get theirs"},
		{"data_dir", &flags.DataDir, func(c *relay.Config) *string { return &c.DataDir }, "folder of all that the relay keeps"},
		{"tunnel_listen", &flags.TunnelListen, func(c *relay.Config) *string { return &c.TunnelListen }, "where agents connect, UDP and TCP"},
		{"edge_http_listen", &flags.EdgeHTTPListen, func(c *relay.Config) *string { return &c.EdgeHTTPListen }, "where visitors connect"},
		{"edge_https_listen", &flags.EdgeHTTPSListen, func(c *relay.Config) *string { return &c.EdgeHTTPSListen }, "where visitors connect by TLS"},
		{"console_listen", &flags.ConsoleListen, func(c *relay.Config) *string { return &c.ConsoleListen }, "where the operator's page and API are"},
		{"public_host", &flags.PublicHost, func(c *relay.Config) *string { return &c.PublicHost }, "where agents find the relay (default domain)"},
		{"tcp_ports", &flags.TCPPorts, func(c *relay.Config) *string { return &c.TCPPorts }, "ports for tcp tunnels, or none"},
		{"udp_ports", &flags.UDPPorts, func(c *relay.Config) *string { return &c.UDPPorts }, "ports for udp tunnels, or none"},
		{"proxy_protocol", &flags.ProxyProtocol, func(c *relay.Config) *string { return &c.ProxyProtocol }, "PROXY headers of trusted_proxies: accept, require or off"},
		{"tls_cert", &flags.TLSCert, func(c *relay.Config) *string { return &c.TLSCert }, "certificate for visitors"},
		{"tls_key", &flags.TLSKey, func(c *relay.Config) *string { return &c.TLSKey }, "its key"},
		{"geo_database", &flags.Geo.Database, func(c *relay.Config) *string { return &c.Geo.Database }, "MMDB file for policies by country"},
	}
	ports := []struct {
		name string
		at   *int
		of   func(*relay.Config) *int
		help string
	}{
		{"public_http_port", &flags.PublicHTTPPort, func(c *relay.Config) *int { return &c.PublicHTTPPort }, "port of http URLs (default that of edge_http_listen)"},
		{"public_https_port", &flags.PublicHTTPSPort, func(c *relay.Config) *int { return &c.PublicHTTPSPort }, "port of https and tls URLs and of HTTP/3 (default that of edge_https_listen)"},
		{"public_tunnel_port", &flags.PublicTunnelPort, func(c *relay.Config) *int { return &c.PublicTunnelPort }, "port of public_host for agents (default that of tunnel_listen)"},
	}
	for _, t := range texts {
		f.StringVar(t.at, t.name, *t.at, t.help)
	}
	for _, p := range ports {
		f.IntVar(p.at, p.name, *p.at, p.help)
	}
	f.BoolVar(&flags.AnyDomain, "any_domain", false, "clients may claim names outside of domain")
	f.BoolVar(&flags.HTTP3, "http3", true, "HTTP/3 for visitors, on the UDP port of edge_https_listen")
	f.StringSliceVar(&flags.TrustedProxies, "trusted_proxies", nil, "CIDRs of load balancers in front")
	f.StringSliceVar(&flags.NATS.URLs, "nats_urls", nil, "an external NATS cluster (default embedded)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, from, err := loadRelayConfig(file)
		if err != nil {
			return err
		}
		for _, t := range texts {
			if f.Changed(t.name) {
				*t.of(&cfg) = *t.at
			}
		}
		for _, p := range ports {
			if f.Changed(p.name) {
				*p.of(&cfg) = *p.at
			}
		}
		if f.Changed("any_domain") {
			cfg.AnyDomain = flags.AnyDomain
		}
		if f.Changed("http3") {
			cfg.HTTP3 = flags.HTTP3
		}
		if f.Changed("trusted_proxies") {
			cfg.TrustedProxies = flags.TrustedProxies
		}
		if f.Changed("nats_urls") {
			cfg.NATS.URLs = flags.NATS.URLs
		}
		if err := cfg.Validate(); err != nil {
			var fault *relay.KeyError
			if !errors.As(err, &fault) || from == "" {
				return err
			}
			if key, _, _ := strings.Cut(fault.Key, "["); f.Changed(strings.ReplaceAll(key, ".", "_")) {
				return err
			}
			return fmt.Errorf("%s: %w", from, err)
		}
		return runRelay(cmd, env, cfg)
	}
	return cmd
}

// loadRelayConfig reads the named file, or the one in the configuration folder
// if there is one, and says which that was.
func loadRelayConfig(file string) (_ relay.Config, from string, err error) {
	if file != "" {
		cfg, err := withDataDir(relay.Load(file))
		return cfg, file, err
	}
	for _, dir := range relayConfigDirs() {
		file := filepath.Join(dir, "relay.toml")
		cfg, err := relay.Load(file)
		if !errors.Is(err, fs.ErrNotExist) {
			cfg, err = withDataDir(cfg, err)
			return cfg, file, err
		}
	}
	cfg, err := withDataDir(relay.Defaults(), nil)
	return cfg, "", err
}

func relayConfigDirs() []string {
	var dirs []string
	if p, err := paths.Person(); err == nil {
		dirs = append(dirs, p.Config)
	}
	return append(dirs, paths.Service().Config)
}

// withDataDir puts the relay's data beside adit's state, if nothing else was said.
func withDataDir(cfg relay.Config, err error) (relay.Config, error) {
	if err == nil && cfg.DataDir == "" {
		if p, err := paths.Person(); err == nil {
			cfg.DataDir = filepath.Join(p.State, "relay")
		}
	}
	return cfg, err
}

func runRelay(cmd *cobra.Command, env *Env, cfg relay.Config) error {
	log := slog.New(slog.NewTextHandler(env.Err, nil))
	lean.WithinLimit()
	r, err := relay.New(relay.Options{Config: cfg, Version: buildinfo.Get().Version, Log: log})
	if err != nil {
		return err
	}
	a := r.Addrs()
	started := struct {
		Tunnel    string `json:"tunnel_listen"`
		HTTP      string `json:"edge_http_listen"`
		HTTPS     string `json:"edge_https_listen"`
		Console   string `json:"console_url"`
		TokenFile string `json:"admin_token_file"`
		CAFile    string `json:"ca_file"`
		DataDir   string `json:"data_dir"`
	}{
		a.Tunnel, a.HTTP, a.HTTPS, "http://" + discovery.ConnectAddr(a.Console),
		filepath.Join(cfg.DataDir, relay.AdminTokenFile), r.CAFile(), cfg.DataDir,
	}
	if env.json {
		if err := env.print(started, nil); err != nil {
			r.Close()
			return err
		}
	}
	env.say("The relay of %s runs.", cfg.Domain)
	env.say("  listens for agents    %s, UDP and TCP", a.Tunnel)
	env.say("  listens for visitors  %s (http), %s (https)", a.HTTP, a.HTTPS)
	env.say("  console               %s", started.Console)
	if code := r.SetupCode(); code != "" {
		env.say("  its first account     enter the set-up code %s there; it is in %s too", code, filepath.Join(cfg.DataDir, relay.SetupCodeFile))
	}
	env.say("Add a client with: adit relay client add NAME%s", dataDirHint(cfg.DataDir))
	ctx, cancel := context.WithCancel(cmd.Context())
	var rest sync.WaitGroup
	rest.Go(func() { lean.AfterStart(ctx) })
	err = r.Run(ctx)
	cancel()
	rest.Wait()
	return err
}

// dataDirHint is what commands need to find a relay whose data is elsewhere.
func dataDirHint(dir string) string {
	if slices.Contains(relayDataDirs(), dir) {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return fmt.Sprintf(" --data_dir %s", dir)
}

// relayDataDirs are where a relay's data may be.
func relayDataDirs() []string {
	var dirs []string
	for _, state := range paths.States() {
		dirs = append(dirs, filepath.Join(state, "relay"))
	}
	return dirs
}

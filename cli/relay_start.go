package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/internal/buildinfo"
	"adit/internal/discovery"
	"adit/internal/lean"
	"adit/internal/paths"
	"adit/tunnel/relay"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/datadir"
)

func relayStartCommand(env *Env) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run a relay in the foreground",
		Long: `Run a relay in the foreground, until Ctrl-C or SIGTERM.

Its configuration is relay.toml in adit's configuration folder, or the file that
--config names; flags override it. Only domain has no default.`,
		Example: `  adit relay start --domain tunnel.example.com
  adit relay start --config /etc/adit/relay.toml`,
		Args: command.Args(0, 0, ""),
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (default relay.toml in the configuration folder, if it is there)")
	flags := newRelayFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, from, err := loadRelayConfig(file)
		if err != nil {
			return err
		}
		flags.over(&cfg)
		if err := cfg.Validate(); err != nil {
			return flags.located(err, from)
		}
		return runRelay(cmd, env, cfg)
	}
	return cmd
}

// loadRelayConfig reads the named file, or the one in the configuration folder
// if there is one, and says which that was.
func loadRelayConfig(file string) (_ config.Config, from string, err error) {
	if file != "" {
		cfg, err := withDataDir(config.Load(file))
		return cfg, file, err
	}
	for _, dir := range relayConfigDirs() {
		file := filepath.Join(dir, "relay.toml")
		cfg, err := config.Load(file)
		if !errors.Is(err, fs.ErrNotExist) {
			cfg, err = withDataDir(cfg, err)
			return cfg, file, err
		}
	}
	cfg, err := withDataDir(config.Defaults(), nil)
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
func withDataDir(cfg config.Config, err error) (config.Config, error) {
	if err == nil && cfg.DataDir == "" {
		if p, err := paths.Person(); err == nil {
			cfg.DataDir = filepath.Join(p.State, "relay")
		}
	}
	return cfg, err
}

func runRelay(cmd *cobra.Command, env *Env, cfg config.Config) error {
	log := slog.New(slog.NewTextHandler(env.std.Err, nil))
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
		filepath.Join(cfg.DataDir, datadir.AdminTokenFile), r.CAFile(), cfg.DataDir,
	}
	if env.std.JSON {
		if err := env.std.Print(started, nil); err != nil {
			r.Close()
			return err
		}
	}
	env.std.Say("The relay of %s runs.", cfg.Domain)
	env.std.Say("  listens for agents    %s, UDP and TCP", a.Tunnel)
	env.std.Say("  listens for visitors  %s (http), %s (https)", a.HTTP, a.HTTPS)
	env.std.Say("  console               %s", started.Console)
	if callback := r.CallbackURL(); callback != "" {
		env.std.Say("  visitors sign in      and come back to %s", callback)
	}
	if code := r.SetupCode(); code != "" {
		env.std.Say("  its first account     enter the set-up code %s there; it is in %s too", code, filepath.Join(cfg.DataDir, datadir.SetupCodeFile))
	}
	env.std.Say("Add a client with: adit relay client add NAME%s", dataDirHint(cfg.DataDir))
	ctx, cancel := context.WithCancel(cmd.Context())
	var rest sync.WaitGroup
	rest.Go(func() { lean.AfterStart(ctx) })
	err = r.Run(ctx)
	cancel()
	rest.Wait()
	return err
}

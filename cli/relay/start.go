package relay

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/stdio"
	"adit/internal/buildinfo"
	"adit/internal/discovery"
	"adit/internal/lean"
	"adit/tunnel/relay"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/datadir"
)

func startCommand(std *stdio.Streams) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run a relay in the foreground",
		Long: `Run a relay in the foreground, until Ctrl-C or SIGTERM.

The configuration is relay.toml in adit's configuration folder, or the file that
--config names; flags override it. Only domain is required.`,
		Example: `  adit relay start --domain tunnel.example.com
  adit relay start --config /etc/adit/relay.toml`,
		Args: command.Args(0, 0, ""),
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (default relay.toml in the configuration folder, if it exists)")
	flags := newStartFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, from, err := loadConfig(file)
		if err != nil {
			return err
		}
		flags.over(&cfg)
		if err := cfg.Validate(); err != nil {
			return flags.located(err, from)
		}
		return runRelay(cmd, std, cfg)
	}
	return cmd
}

func runRelay(cmd *cobra.Command, std *stdio.Streams, cfg config.Config) error {
	log := slog.New(slog.NewTextHandler(std.Err, nil))
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
	if std.JSON {
		if err := std.Print(started, nil); err != nil {
			r.Close()
			return err
		}
	}
	std.Say("The relay of %s runs.", cfg.Domain)
	std.Say("  listens for agents    %s, UDP and TCP", a.Tunnel)
	std.Say("  listens for visitors  %s (http), %s (https)", a.HTTP, a.HTTPS)
	std.Say("  console               %s", started.Console)
	if callback := r.CallbackURL(); callback != "" {
		std.Say("  visitors sign in      by way of %s", callback)
	}
	if code := r.SetupCode(); code != "" {
		std.Say("  first account         enter the set-up code %s there; it is also in %s", code, filepath.Join(cfg.DataDir, datadir.SetupCodeFile))
	}
	std.Say("Add a client with: adit relay client add NAME%s", dataDirHint(cfg.DataDir))
	ctx, cancel := context.WithCancel(cmd.Context())
	var rest sync.WaitGroup
	rest.Go(func() { lean.AfterStart(ctx) })
	err = r.Run(ctx)
	cancel()
	rest.Wait()
	return err
}

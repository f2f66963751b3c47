// Package dev runs all of adit on this machine's loopback for a first look: a relay, the daemon and
// two tunnels, in a temporary folder that lasts until the command ends.
package dev

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"adit/cli/command"
	"adit/cli/stdio"
	"adit/internal/buildinfo"
	"adit/localapi/client"
	"adit/service"
	"adit/tunnel/relay"
	"adit/tunnel/relay/config"
)

// options are the parameters of adit dev. An empty address stands for the preferred one, or any
// free one if that is taken.
type options struct {
	port                                                               int // 0: the sample page
	httpListen, tunnelListen, edgeHTTPListen, edgeHTTPSListen, console string
	verbose                                                            bool
}

// addresses is what adit dev --json prints once everything answers.
type addresses struct {
	WebUI      string     `json:"web_ui"`
	Console    string     `json:"console"`
	Relay      string     `json:"relay"`
	AuthToken  string     `json:"auth_token"`
	AdminToken string     `json:"admin_token"`
	PublicURLs publicURLs `json:"public_urls"`
	CAFile     string     `json:"ca_file"`
	DataDir    string     `json:"data_dir"`
}

type publicURLs struct {
	HTTP  string `json:"http"`
	HTTPS string `json:"https"`
}

// patience is how long everything may take to answer.
const patience = 60 * time.Second

// Command is adit dev.
func Command(std *stdio.Streams) *cobra.Command {
	var opts options
	cmd := &cobra.Command{
		Use:   "dev [PORT]",
		Short: "Try all of adit on this machine, without a server",
		Long: `Run all of adit on this machine's loopback to try it out: a relay, the daemon,
and an http and an https tunnel to local PORT, or to a sample page without PORT.
All data is in a temporary folder, which Ctrl-C removes.`,
		Example: `  adit dev
  adit dev 8000
  adit dev --json --http_listen 127.0.0.1:0`,
		Args: command.Args(0, 1, "[PORT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				port, err := strconv.Atoi(args[0])
				if err != nil || port < 1 || port > 65535 {
					return command.Usagef("PORT must be a number from 1 to 65535, not %q", args[0])
				}
				opts.port = port
			}
			return run(cmd.Context(), std, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.httpListen, "http_listen", "", "address of the Web UI and the local API (default 127.0.0.1:37271, or a free port)")
	flags.StringVar(&opts.tunnelListen, "tunnel_listen", "", "address where the relay accepts the daemon (default 127.0.0.1:4433, or a free port)")
	flags.StringVar(&opts.edgeHTTPListen, "edge_http_listen", "", "address where the relay accepts visitors over http (default 127.0.0.1:8080, or a free port)")
	flags.StringVar(&opts.edgeHTTPSListen, "edge_https_listen", "", "address where the relay accepts visitors over https (default 127.0.0.1:8443, or a free port)")
	flags.StringVar(&opts.console, "console_listen", "", "address of the relay's console (default 127.0.0.1:37280, or a free port)")
	flags.BoolVar(&opts.verbose, "verbose", false, "print the relay's and the daemon's log")
	return cmd
}

// favour returns addr unchanged or, if it is empty, the preferred address or a free one. It avoids
// port, which is to be published and is left to its service: a service that is not running yet may
// be started later.
func favour(addr, favoured string, port int) (string, error) {
	published := "127.0.0.1:" + strconv.Itoa(port)
	if addr != "" {
		host, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return "", command.Usagef("adit dev stays on loopback: %q must be 127.0.0.1:PORT or [::1]:PORT", addr)
		}
		if addr == published && port != 0 {
			return "", command.Usagef("adit dev cannot listen on %s, the port that it is to publish", addr)
		}
		return addr, nil
	}
	if favoured == published {
		return "127.0.0.1:0", nil
	}
	if l, err := net.Listen("tcp", favoured); err == nil {
		defer l.Close()
		if c, err := net.ListenPacket("udp", favoured); err == nil {
			c.Close()
			return favoured, nil
		}
	}
	return "127.0.0.1:0", nil
}

func run(ctx context.Context, std *stdio.Streams, opts options) error {
	for _, a := range []struct {
		addr     *string
		favoured string
	}{
		{&opts.httpListen, client.DefaultURL[len("http://"):]},
		{&opts.tunnelListen, "127.0.0.1:4433"},
		{&opts.edgeHTTPListen, "127.0.0.1:8080"},
		{&opts.edgeHTTPSListen, "127.0.0.1:8443"},
		{&opts.console, "127.0.0.1:37280"},
	} {
		addr, err := favour(*a.addr, a.favoured, opts.port)
		if err != nil {
			return err
		}
		*a.addr = addr
	}
	dir, err := os.MkdirTemp("", "adit-dev-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)

	log := slog.New(slog.DiscardHandler)
	if opts.verbose {
		log = slog.New(slog.NewTextHandler(std.Err, nil))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	err = start(ctx, std, group, opts, dir, log)
	if err != nil {
		stop()
	}
	return errors.Join(err, group.Wait())
}

// start starts the relay, the daemon and the sample page in group, and reports their addresses once
// they answer.
func start(ctx context.Context, std *stdio.Streams, group *errgroup.Group, opts options, dir string, log *slog.Logger) error {
	cfg := config.Defaults()
	cfg.Domain, cfg.PublicHost, cfg.DataDir = "localhost", "127.0.0.1", filepath.Join(dir, "relay")
	cfg.TunnelListen, cfg.ConsoleListen = opts.tunnelListen, opts.console
	cfg.EdgeHTTPListen, cfg.EdgeHTTPSListen = opts.edgeHTTPListen, opts.edgeHTTPSListen
	server, err := relay.New(relay.Options{Config: cfg, Version: buildinfo.Get().Version, Log: log.With("part", "relay"), Drain: time.Second})
	if err != nil {
		return err
	}
	group.Go(func() error { return server.Run(ctx) })
	_, token, err := server.Clients().Add(ctx, "dev", relay.Scope{OwnPolicies: true})
	if err != nil {
		return err
	}
	what := "port " + strconv.Itoa(opts.port) + " on this machine"
	if opts.port == 0 {
		what = "a sample page"
		sample, err := newSamplePage()
		if err != nil {
			return err
		}
		opts.port = sample.port()
		group.Go(func() error { return sample.serve(ctx) })
	}
	state := filepath.Join(dir, "agent")
	daemon := service.Daemon{
		HTTPListen: opts.httpListen, ConfigDir: state, StateDir: state, AuthToken: token.Reveal(), Log: log.With("part", "daemon"),
	}
	at := server.Addrs()
	for _, addr := range []string{at.Tunnel, at.HTTP, at.HTTPS, at.Console} {
		daemon.Relay = append(daemon.Relay, netip.MustParseAddrPort(addr))
	}
	group.Go(func() error { return daemon.Run(ctx) })

	ready, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	report := addresses{
		Console: "http://" + server.Addrs().Console, Relay: server.Addrs().Tunnel,
		AuthToken: token.Reveal(), AdminToken: server.AdminToken(), CAFile: server.CAFile(), DataDir: dir,
	}
	if err := publish(ready, state, opts.port, &report); err != nil {
		if ctx.Err() != nil {
			return nil // ended by Ctrl-C, or by an error that the group tells
		}
		return err
	}
	if err := awaitAnswers(ready, report); err != nil {
		return err
	}
	if std.JSON {
		return printLine(std, report)
	}
	report.print(std.Out, what)
	if !listens(ctx, opts.port) {
		return std.PrintText(fmt.Sprintf("\nNothing listens on port %d yet: until it does, the public URLs say that the service is down.\n", opts.port))
	}
	return nil
}

// publish waits for the daemon's session and creates the two tunnels.
func publish(ctx context.Context, state string, port int, report *addresses) error {
	var daemon *client.Client
	if err := poll(ctx, func() error {
		found, info, err := client.Discover(ctx, state)
		if err == nil {
			daemon, report.WebUI = found, "http://"+info.ConnectAddr
		}
		return err
	}); err != nil {
		return fmt.Errorf("wait for the daemon: %w", err)
	}
	if err := poll(ctx, func() error {
		status, err := daemon.Status(ctx)
		if err == nil && !status.Connected {
			err = fmt.Errorf("it is %s: %s", status.State, status.LastError)
		}
		return err
	}); err != nil {
		return fmt.Errorf("wait for the daemon's session: %w", err)
	}
	for kind, url := range map[client.TunnelType]*string{"http": &report.PublicURLs.HTTP, "https": &report.PublicURLs.HTTPS} {
		made, err := daemon.CreateTunnel(ctx, client.TunnelCreate{Type: kind, LocalPort: port, Domain: "sample"})
		if err != nil {
			return fmt.Errorf("create the %s tunnel: %w", kind, err)
		}
		*url = made.PublicURL
	}
	return nil
}

// awaitAnswers waits until both public URLs answer. What the origin says does not matter: any
// answer but the relay's "no such tunnel" will do.
func awaitAnswers(ctx context.Context, report addresses) error {
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(report.CAFile)
	if err != nil {
		return fmt.Errorf("read the relay's authority: %w", err)
	}
	roots.AppendCertsFromPEM(pem)
	visitor := loopbackVisitor(roots)
	defer visitor.CloseIdleConnections()
	for _, url := range []string{report.PublicURLs.HTTP, report.PublicURLs.HTTPS} {
		if err := poll(ctx, func() error {
			resp, err := visitor.Get(url)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
			return err
		}); err != nil {
			return fmt.Errorf("wait for %s: %w", url, err)
		}
	}
	return nil
}

// poll repeats try until it succeeds; if ctx ends, it returns try's last error.
func poll(ctx context.Context, try func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

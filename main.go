// Command adit publishes a service of this machine at a public URL: it is the
// agent's daemon, the relay, the tray companion and their commands in one program.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"adit/cli"
	"adit/internal/paths"
	"adit/service"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := cli.System()
	env.Daemon = func(ctx context.Context, opts cli.DaemonOptions) error {
		folders, err := paths.Person()
		if err != nil {
			return err
		}
		return service.Daemon{HTTPListen: opts.HTTPListen, ConfigDir: folders.Config, StateDir: folders.State}.Run(ctx)
	}
	return cli.Run(ctx, env, os.Args[1:])
}

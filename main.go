// Command adit publishes a service of this machine at a public URL: it is the
// agent's daemon, the relay, the tray companion and their commands in one program.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"adit/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, cli.System(), cli.Args(os.Args))
}

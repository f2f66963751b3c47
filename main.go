// Command adit publishes a service of this machine at a public URL. It is the agent's daemon, the
// relay, the tray companion and their commands in one program.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"adit/cli"
)

func main() { os.Exit(run()) }

func run() int {
	log.SetOutput(cli.Untold(os.Stderr))
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	// Closing a terminal ends the command that runs in it, just as Ctrl-C does: what adit https
	// publishes must not stay public. nohup ignores the signal deliberately, and that is respected.
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	return cli.Run(ctx, cli.System(), cli.Args(os.Args))
}

// Command adit publishes a service of this machine at a public URL: it is the
// agent's daemon, the relay, the tray companion and their commands in one program.
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
	// A terminal that is closed ends what runs in it as Ctrl-C does: what adit
	// https publishes must not stay public. nohup has it ignored, and means it.
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	return cli.Run(ctx, cli.System(), cli.Args(os.Args))
}

package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/localapi/client"
)

// publish publishes what until ctx ends or its time is over, and shows what happens.
func publish(ctx context.Context, std *stdio.Streams, find *daemon.Finder, what published) (err error) {
	// The reader of the output may go first, as in adit https 3000 | head, or when an ssh
	// connection ends. That ends the command in an orderly way: killing the process would leave the
	// tunnel public for a while.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGPIPE)
	defer stop()
	ctx, over := until(ctx, what.Ends)
	defer over()
	c, own, err := find.ClientOrEmbedded(ctx, what.command())
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(own.End(), err) }() // what ended the daemon is the cause
	held := heldTunnel{client: c, wanted: what.TunnelCreate, anyName: what.AnyName}
	defer held.release()
	told := tellOfWait(ctx, std, c)
	t, err := held.create(ctx, what.TunnelCreate)
	told()
	if err != nil {
		return daemon.WithoutToken(ctx, c, err)
	}
	shown := &view{std: std, ownDaemon: own.Runs, published: what, tunnel: t, web: c.BaseURL()}
	f := follower{view: shown, held: &held, find: find, own: own, behind: true}
	watchErr := f.follow(ctx)
	if own.Failed() != nil {
		return nil // nothing is left to be removed; own.End says why
	}
	// The end of ctx is the usual way to get here, so giving the address back has its own time
	// limit.
	giveBack, cancel := context.WithTimeout(context.WithoutCancel(ctx), daemon.RemoveTimeout)
	defer cancel()
	id := shown.tunnel.ID
	_, err = daemon.Patiently(giveBack, func() (struct{}, error) { return struct{}{}, held.client.DeleteTunnel(giveBack, id) })
	if own.Gone(shown.status, err) {
		err = nil
	}
	if err != nil && !client.IsCode(err, client.ErrorCodeNotFound) {
		return fmt.Errorf("remove the tunnel %s: %w", id, err)
	}
	if watchErr == nil && f.gone {
		return fmt.Errorf("the tunnel was deleted by someone else")
	}
	switch {
	case watchErr == nil && errors.Is(context.Cause(ctx), errOver):
		std.Say("The time is up. Removed the tunnel.")
	case watchErr == nil:
		std.Say("Removed the tunnel.")
	}
	return watchErr
}

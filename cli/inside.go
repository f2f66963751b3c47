package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"

	"adit/internal/paths"
	"adit/localapi/client"
	"adit/service"
)

// insideDaemon runs the person's daemon in this process. Its log is kept by the
// local API alone.
func insideDaemon(ctx context.Context, runBy string, ready func()) error {
	folders, err := paths.Person()
	if err != nil {
		return err
	}
	return service.Daemon{
		ConfigDir: folders.Config, StateDir: folders.State, RunBy: runBy,
		Log: slog.New(slog.DiscardHandler), Ready: func(net.Addr) { ready() },
	}.Run(ctx)
}

// inside is a daemon in a command's own process; there may be none.
type inside struct {
	env   *Env
	runBy string // the command

	stop  context.CancelFunc
	ended chan error // gets why it ended; nil while none runs
}

// daemon finds the daemon for a command. Where none runs, and none is installed
// that should, in has one run in this process until in.end.
func (e *Env) daemon(ctx context.Context, runBy string) (*client.Client, *inside, error) {
	in := &inside{env: e, runBy: runBy}
	c, err := e.client(ctx)
	if err == nil || e.Inside == nil || !nobodyThere(err) || !mayRunInside(installed()) {
		return c, in, err
	}
	beginErr := in.begin(ctx)
	// Where it could not begin, another may have been sooner.
	if c, err = e.client(ctx); err != nil {
		return nil, in, cmp.Or(beginErr, in.end(), err)
	}
	return c, in, nil
}

// nobodyThere reports whether no daemon runs, and nothing else is at its address.
func nobodyThere(err error) bool {
	return errors.Is(err, client.ErrNotRunning) && !errors.Is(err, client.ErrSilent) && !errors.Is(err, client.ErrForeign)
}

// mayRunInside reports whether a command may run the daemon itself: a service that
// does not run is to be started, because it has the machine's token and tunnels.
func mayRunInside(s service.Status) bool { return s.State == "" || s.State == service.NotInstalled }

// runs reports whether the daemon was begun, and not ended by us.
func (in *inside) runs() bool { return in.ended != nil }

// begin runs the daemon, and returns once it answers.
func (in *inside) begin(ctx context.Context) error {
	// It outlasts ctx: the command has its tunnel removed after Ctrl-C.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- in.env.Inside(life, in.runBy, func() { close(ready) }) }()
	select {
	case <-ready:
		in.stop, in.ended = stop, ended
		return nil
	case err := <-ended:
		stop()
		return err
	case <-ctx.Done():
		stop()
		return errors.Join(ctx.Err(), <-ended)
	}
}

// failed is why the daemon has ended by itself; nil while it runs.
func (in *inside) failed() error {
	select {
	case err := <-in.ended:
		in.ended <- err // for end
		if err == nil {
			err = errors.New("the daemon in this command has ended")
		}
		return err
	default:
		return nil
	}
}

// takeOver runs the daemon in place of another command's that has ended, and
// reports whether it does. Of those that want to, one does.
func (in *inside) takeOver(ctx context.Context, before client.Status) bool {
	return before.RunBy != "" && !in.runs() && in.begin(ctx) == nil
}

// gone reports whether err says that the daemon, which another command ran, has
// ended with that: the tunnels of all commands ended with it.
func (in *inside) gone(before client.Status, err error) bool {
	return before.RunBy != "" && !in.runs() && nobodyThere(err)
}

// end ends the daemon, if one was begun.
func (in *inside) end() error {
	if !in.runs() {
		return nil
	}
	in.stop()
	err := <-in.ended
	in.ended = nil
	return err
}

package daemon

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

// RunInside runs the person's daemon in this process. Its log is kept by the
// local API alone.
func RunInside(ctx context.Context, runBy string, ready func()) error {
	folders, err := paths.Person()
	if err != nil {
		return err
	}
	return service.Daemon{
		ConfigDir: folders.Config, StateDir: folders.State, RunBy: runBy,
		Log: slog.New(slog.DiscardHandler), Ready: func(net.Addr) { ready() },
	}.Run(ctx)
}

// Embedded is a daemon in a command's own process; there may be none.
type Embedded struct {
	run   func(ctx context.Context, runBy string, ready func()) error
	runBy string // the command

	stop  context.CancelFunc
	ended chan error // gets why it ended; nil while none runs
}

// ClientOrEmbedded finds the daemon for a command. Where none runs, and none is installed
// that should, own has one run in this process until own.End.
func (f *Finder) ClientOrEmbedded(ctx context.Context, runBy string) (_ *client.Client, own *Embedded, err error) {
	own = &Embedded{run: f.Inside, runBy: runBy}
	c, err := f.Client(ctx)
	if err == nil || f.Inside == nil || !nobodyThere(err) || !mayRunInside(installed()) {
		return c, own, err
	}
	beginErr := own.begin(ctx)
	// Where it could not begin, another may have been sooner.
	if c, err = f.Client(ctx); err != nil {
		return nil, own, cmp.Or(beginErr, own.End(), err)
	}
	return c, own, nil
}

// nobodyThere reports whether no daemon runs, and nothing else is at its address.
func nobodyThere(err error) bool {
	return errors.Is(err, client.ErrNotRunning) && !errors.Is(err, client.ErrSilent) && !errors.Is(err, client.ErrForeign)
}

// mayRunInside reports whether a command may run the daemon itself: a service that
// does not run is to be started, because it has the machine's token and tunnels.
func mayRunInside(s service.Status) bool { return s.State == "" || s.State == service.NotInstalled }

// Runs reports whether the daemon was begun, and not ended by us.
func (e *Embedded) Runs() bool { return e.ended != nil }

// begin runs the daemon, and returns once it answers.
func (e *Embedded) begin(ctx context.Context) error {
	// It outlasts ctx: the command has its tunnel removed after Ctrl-C.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- e.run(life, e.runBy, func() { close(ready) }) }()
	select {
	case <-ready:
		e.stop, e.ended = stop, ended
		return nil
	case err := <-ended:
		stop()
		return err
	case <-ctx.Done():
		stop()
		return errors.Join(ctx.Err(), <-ended)
	}
}

// Failed is why the daemon has ended by itself; nil while it runs.
func (e *Embedded) Failed() error {
	select {
	case err := <-e.ended:
		e.ended <- err // for end
		if err == nil {
			err = errors.New("the daemon in this command has ended")
		}
		return err
	default:
		return nil
	}
}

// TakeOver runs the daemon in place of another command's that has ended, and
// reports whether it does. Of those that want to, one does.
func (e *Embedded) TakeOver(ctx context.Context, before client.Status) bool {
	return before.RunBy != "" && !e.Runs() && e.begin(ctx) == nil
}

// Gone reports whether err says that the daemon, which another command ran, has
// ended with that: the tunnels of all commands ended with it.
func (e *Embedded) Gone(before client.Status, err error) bool {
	return before.RunBy != "" && !e.Runs() && nobodyThere(err)
}

// End ends the daemon, if one was begun.
func (e *Embedded) End() error {
	if !e.Runs() {
		return nil
	}
	e.stop()
	err := <-e.ended
	e.ended = nil
	return err
}

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

// RunInside runs the user's daemon in this process. Only the local API keeps its log.
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

// Embedded is a daemon in a command's own process, if it runs one.
type Embedded struct {
	run   func(ctx context.Context, runBy string, ready func()) error
	runBy string // the command

	stop  context.CancelFunc
	ended chan error // gets why it ended; nil while none runs
}

// ClientOrEmbedded finds the daemon for a command. If none is running, and none is installed that
// should be, own runs one in this process until own.End.
func (f *Finder) ClientOrEmbedded(ctx context.Context, runBy string) (_ *client.Client, own *Embedded, err error) {
	own = &Embedded{run: f.Inside, runBy: runBy}
	c, err := f.Client(ctx)
	if err == nil || f.Inside == nil || !nobodyThere(err) || !mayRunInside(installed()) {
		return c, own, err
	}
	beginErr := own.begin(ctx)
	// If it could not start, another one may have been faster.
	if c, err = f.Client(ctx); err != nil {
		return nil, own, cmp.Or(beginErr, own.End(), err)
	}
	return c, own, nil
}

// nobodyThere reports whether no daemon is running, and nothing else is at its address.
func nobodyThere(err error) bool {
	return errors.Is(err, client.ErrNotRunning) && !errors.Is(err, client.ErrSilent) && !errors.Is(err, client.ErrForeign)
}

// mayRunInside reports whether a command may run the daemon itself. A service that is not running
// should be started instead, because it has the machine's token and tunnels.
func mayRunInside(s service.Status) bool { return s.State == "" || s.State == service.NotInstalled }

// Runs reports whether the daemon was started here, and not ended by us.
func (e *Embedded) Runs() bool { return e.ended != nil }

// begin starts the daemon, and returns once it answers.
func (e *Embedded) begin(ctx context.Context) error {
	// The daemon outlives ctx: the command has its tunnel removed after Ctrl-C.
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

// Failed returns why the daemon has ended by itself; nil while it is running.
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

// TakeOver runs the daemon in place of another command's that has ended, and reports whether it
// does. If several commands try, one of them does.
func (e *Embedded) TakeOver(ctx context.Context, before client.Status) bool {
	return before.RunBy != "" && !e.Runs() && e.begin(ctx) == nil
}

// Gone reports whether err means that the daemon has ended together with the command that ran it;
// the tunnels of all commands have ended with it.
func (e *Embedded) Gone(before client.Status, err error) bool {
	return before.RunBy != "" && !e.Runs() && nobodyThere(err)
}

// End ends the daemon, if one was started.
func (e *Embedded) End() error {
	if !e.Runs() {
		return nil
	}
	e.stop()
	err := <-e.ended
	e.ended = nil
	return err
}

package visit

import (
	"context"
	"errors"
	"sync"

	"adit/cli/daemon"
	"adit/localapi/client"
)

// way leads to private tunnels through the daemon that was found.
type way struct {
	client *client.Client
	found  client.Status // how the daemon was then

	taking sync.Mutex // held while own takes the daemon's place
	own    *daemon.Embedded
}

// to connects to a private tunnel with one of the client's methods. If another command ran the
// daemon, and has ended, this one runs it from now on.
func (w *way) to(ctx context.Context, tunnel string, visit func(context.Context, string) (client.VisitConn, error)) (client.VisitConn, error) {
	conn, err := visit(ctx, tunnel)
	if !errors.Is(err, client.ErrNotRunning) || !w.takeOver(ctx, err) {
		return conn, err
	}
	return visit(ctx, tunnel)
}

// takeOver reports whether there may be a daemon again after err.
func (w *way) takeOver(ctx context.Context, err error) bool {
	w.taking.Lock()
	defer w.taking.Unlock()
	if w.own.Runs() { // since another connection met the same
		return w.own.Failed() == nil
	}
	if !w.own.Gone(w.found, err) {
		return false
	}
	w.own.TakeOver(ctx, w.found) // or one more command was sooner
	return true
}

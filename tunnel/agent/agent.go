package agent

import (
	"context"
	"errors"
	"io"

	"adit/tunnel/agent/inspect"
)

// Agent keeps the session and the tunnels. Its methods may be called from
// several goroutines; those that change something run one at a time, and while
// one runs another gets CodeControlBusy at once.
type Agent struct{ cfg Config }

var errSkeleton = errors.New("not built yet")

// New reads the state folder. It starts nothing.
func New(cfg Config) (*Agent, error) { return &Agent{cfg: cfg}, nil }

// Run keeps session and tunnels until ctx ends.
func (a *Agent) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Status returns the agent as a whole.
func (a *Agent) Status() Status { return Status{State: StateUnconfigured} }

// Auth returns the token in force.
func (a *Agent) Auth() AuthStatus { return AuthStatus{} }

// Configure tries token at its relay and then takes it instead of the one in
// force; if it is refused, all stays as it was.
func (a *Agent) Configure(ctx context.Context, token, clientID string) (AuthStatus, error) {
	return AuthStatus{}, errSkeleton
}

// Forget drops the token and closes the session.
func (a *Agent) Forget(ctx context.Context) error { return errSkeleton }

// Tunnels returns all tunnels, oldest first.
func (a *Agent) Tunnels() []Tunnel { return nil }

// Tunnel returns one tunnel.
func (a *Agent) Tunnel(id string) (Tunnel, bool) { return Tunnel{}, false }

// Create adds a tunnel and starts it.
func (a *Agent) Create(ctx context.Context, spec TunnelSpec) (Tunnel, error) {
	return Tunnel{}, errSkeleton
}

// Change changes a tunnel.
func (a *Agent) Change(ctx context.Context, id string, patch TunnelPatch) (Tunnel, error) {
	return Tunnel{}, errSkeleton
}

// StartTunnel starts a stopped tunnel.
func (a *Agent) StartTunnel(ctx context.Context, id string) (Tunnel, error) {
	return Tunnel{}, errSkeleton
}

// StopTunnel stops a tunnel; its name is kept.
func (a *Agent) StopTunnel(ctx context.Context, id string) (Tunnel, error) {
	return Tunnel{}, errSkeleton
}

// DeleteTunnel removes a tunnel and gives its public address back.
func (a *Agent) DeleteTunnel(ctx context.Context, id string) error { return errSkeleton }

// Endpoints returns the public faces of the tunnels that run.
func (a *Agent) Endpoints() []Endpoint { return nil }

// Pause ends the session until Resume; it outlives a restart.
func (a *Agent) Pause(ctx context.Context) (Status, error) { return Status{}, errSkeleton }

// Resume undoes Pause.
func (a *Agent) Resume(ctx context.Context) (Status, error) { return Status{}, errSkeleton }

// Reconnect replaces the session by a new one at once.
func (a *Agent) Reconnect(ctx context.Context) (Status, error) { return Status{}, errSkeleton }

// Diagnose looks at what a session needs and says what it found.
func (a *Agent) Diagnose(ctx context.Context) []Check { return nil }

// Subscribe begins a feed after the event with the id after; nil begins with
// what comes next.
func (a *Agent) Subscribe(after *uint64) *Subscription { return &Subscription{} }

// Publish puts an event of another part of the daemon (a log line) into the feed.
func (a *Agent) Publish(kind string, data any) {}

// Subscription is one reader's place in the event feed. It holds nothing that
// must be closed, and belongs to one goroutine.
type Subscription struct{}

// Next waits for the next event. A reader that is too slow gets an EventMissed
// in place of what it lost. It returns ctx's error if ctx ends first.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	<-ctx.Done()
	return Event{}, ctx.Err()
}

// Requests returns the inspector's entries, newest first.
func (a *Agent) Requests(f inspect.Filter) []inspect.Summary { return nil }

// Request returns one entry in full; reveal shows what is redacted otherwise.
func (a *Agent) Request(id string, reveal bool) (inspect.Detail, bool) {
	return inspect.Detail{}, false
}

// Replay sends a kept request to its tunnel's origin again, changed by edit,
// and returns the new entry.
func (a *Agent) Replay(ctx context.Context, id string, edit inspect.Edit) (inspect.Detail, error) {
	return inspect.Detail{}, errSkeleton
}

// ClearRequests forgets all entries.
func (a *Agent) ClearRequests() {}

// WriteHAR writes the entries that f picks as HAR 1.2.
func (a *Agent) WriteHAR(w io.Writer, f inspect.Filter, reveal bool) error { return errSkeleton }

// ReadHAR takes the entries of a HAR file in, to look at and to replay.
func (a *Agent) ReadHAR(r io.Reader) (int, error) { return 0, errSkeleton }

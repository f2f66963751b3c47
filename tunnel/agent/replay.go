package agent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
)

// Requests returns the inspector's entries, newest first.
func (a *Agent) Requests(f inspect.Filter) []inspect.Summary { return a.inspector.List(f) }

// Request returns one entry in full; reveal shows what is redacted otherwise.
func (a *Agent) Request(id string, reveal bool) (inspect.Detail, bool) {
	return a.inspector.Detail(id, reveal)
}

// ClearRequests forgets all entries.
func (a *Agent) ClearRequests() { a.inspector.Clear() }

// WriteHAR writes the entries that f picks as HAR 1.2.
func (a *Agent) WriteHAR(w io.Writer, f inspect.Filter, reveal bool) error {
	return a.inspector.WriteHAR(w, f, a.cfg.Version, reveal)
}

// ReadHAR takes the entries of a HAR file in, to look at and to replay.
func (a *Agent) ReadHAR(r io.Reader) (int, error) {
	n, err := a.inspector.ReadHAR(r)
	if errors.Is(err, inspect.ErrOff) {
		return n, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error() + "; [inspector] enabled in adit.toml turns it on"}
	}
	if errors.Is(err, inspect.ErrHAR) {
		return n, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error()}
	}
	return n, err
}

// replayTarget is the tunnel of id; without an id, as of an imported request, it
// is the only one that carries HTTP.
func (a *Agent) replayTarget(id string) (*tunnel, *refusal.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id != "" {
		if t := a.tunnels[id]; t != nil {
			return t, nil
		}
		return nil, &refusal.Error{Code: refusal.CodeNotFound, Message: "the tunnel that this request came through is not there any more"}
	}
	var web []*tunnel
	for _, t := range a.tunnels {
		if t.spec.Web() {
			web = append(web, t)
		}
	}
	if len(web) != 1 {
		return nil, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: fmt.Sprintf("a request of an archive is sent to the one tunnel that carries HTTP, and there are %d", len(web))}
	}
	return web[0], nil
}

// Replay sends a kept request to its tunnel's origin again, changed by edit,
// and returns the new entry.
func (a *Agent) Replay(ctx context.Context, id string, edit inspect.Edit) (inspect.Detail, error) {
	again, err := a.inspector.Repeat(id, edit)
	switch {
	case errors.Is(err, inspect.ErrGone):
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeNotFound, Message: err.Error()}
	case err != nil:
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error()}
	}
	t, no := a.replayTarget(again.TunnelID)
	if no != nil {
		return inspect.Detail{}, no
	}
	return a.forward.Replay(ctx, t.forward, id, again)
}

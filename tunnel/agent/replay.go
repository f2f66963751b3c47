package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"adit/internal/wildcard"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
)

// Requests returns the inspector's entries, newest first.
func (a *Agent) Requests(f inspect.Filter) []inspect.Summary { return a.inspector.List(f) }

// Request returns one entry in full; reveal shows values that are otherwise redacted.
func (a *Agent) Request(id string, reveal bool) (inspect.Detail, bool) {
	return a.inspector.Detail(id, reveal)
}

// ClearRequests removes all entries.
func (a *Agent) ClearRequests() {
	a.feed.Publish(EventCleared, ClearedEvent{Requests: a.inspector.Clear()})
}

// WriteHAR writes the entries selected by f as HAR 1.2.
func (a *Agent) WriteHAR(w io.Writer, f inspect.Filter, reveal bool) error {
	return a.inspector.WriteHAR(w, f, a.cfg.Version, reveal)
}

// ReadHAR imports the entries of a HAR file, for viewing and replay.
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

// replayTarget returns the tunnel through which again originally came. An imported request came
// through none: its target is the only tunnel that carries HTTP, or else the one that a visitor to
// the request's address would reach.
func (a *Agent) replayTarget(again inspect.Repeat) (*tunnel, *refusal.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if again.TunnelID != "" {
		if t := a.tunnels[again.TunnelID]; t != nil {
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
	switch len(web) {
	case 0:
		return nil, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "a request of an archive is sent to a tunnel that carries HTTP, and there is none"}
	case 1:
		return web[0], nil
	}
	there := nearest(web, again)
	if len(there) != 1 {
		return nil, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: fmt.Sprintf(
			"a request of an archive is sent to the tunnel of its Host, and %d of the %d tunnels that carry HTTP are at %s; give it the Host of one", len(there), len(web), strconv.Quote(again.Host))}
	}
	return there[0], nil
}

// nearest returns those of tunnels whose public address best matches again's: by name rather than
// by wildcard, and then by scheme.
func nearest(tunnels []*tunnel, again inspect.Repeat) []*tunnel {
	asked := url.URL{Host: strings.ToLower(again.Host)}
	name := strings.TrimSuffix(asked.Hostname(), ".")
	var there []*tunnel
	best := 0
	for _, t := range tunnels {
		public, err := url.Parse(t.grant.PublicURL)
		if err != nil || name == "" {
			continue
		}
		var near int
		switch public.Hostname() {
		case name:
			near = 3
		case wildcard.Of(name):
			near = 1
		default:
			continue
		}
		if public.Scheme == again.Scheme {
			near++
		}
		if near > best {
			best, there = near, nil
		}
		if near == best {
			there = append(there, t)
		}
	}
	return there
}

// Replay sends a recorded request to its tunnel's origin again, changed by edit, and returns the
// new entry.
func (a *Agent) Replay(ctx context.Context, id string, edit inspect.Edit) (inspect.Detail, error) {
	again, err := a.inspector.Repeat(id, edit)
	switch {
	case errors.Is(err, inspect.ErrGone):
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeNotFound, Message: err.Error()}
	case err != nil:
		return inspect.Detail{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: err.Error()}
	}
	t, no := a.replayTarget(again)
	if no != nil {
		return inspect.Detail{}, no
	}
	return a.forward.Replay(ctx, t.forward, id, again)
}

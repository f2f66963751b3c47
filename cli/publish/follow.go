package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"adit/cli/agent"
	"adit/cli/daemon"
	"adit/cli/localtime"
	"adit/internal/visible"
	"adit/localapi/client"
)

// follower follows the daemon's events for as long as a short form's tunnel exists, and recreates
// the tunnel if the daemon has forgotten it.
type follower struct {
	view *view
	held *heldTunnel
	find *daemon.Finder
	own  *daemon.Embedded

	gone      bool // the tunnel was deleted
	behind    bool // there may be what no event has told; see catchUp
	restarted bool // the daemon is another than the one that made the tunnel
}

// follow shows events until ctx ends or the tunnel is gone.
func (f *follower) follow(ctx context.Context) error {
	if err := f.view.begin(); err != nil {
		return err
	}
	for {
		if moved, err := f.hear(ctx); !moved {
			return err
		}
	}
}

// hear is like follow for as long as the daemon stays where it is; moved reports whether it is
// elsewhere now.
func (f *follower) hear(ctx context.Context) (moved bool, err error) {
	for event, err := range f.held.client.Events(ctx, "") {
		if err != nil {
			var refusal *client.Error
			if errors.As(err, &refusal) {
				return false, err
			}
			f.behind = true
			f.view.lose(err)
			if f.own.Failed() != nil {
				return false, nil
			}
			if f.own.TakeOver(ctx, f.view.status) {
				f.view.log("%s this command runs the daemon now", localtime.Clock(time.Now()))
			}
			if c := f.find.Moved(ctx, f.held.client); c != nil {
				f.held.client, f.view.web, f.restarted = c, c.BaseURL(), true
				return true, nil
			}
			continue
		}
		f.view.hear()
		if err := f.take(event); err != nil {
			return false, err
		}
		if f.behind && !f.gone {
			if err := f.catchUp(ctx); err != nil {
				return false, err
			}
		}
		if f.gone {
			return false, nil
		}
		if err := lasting(f.view.status); err != nil {
			return false, err
		}
		f.view.draw()
	}
	return false, nil
}

// lasting returns why the session will not come back by itself; nil if it may. A revoked token
// never becomes valid again, and waiting for visitors would be in vain. A user who logs out means
// what is public now, and does not expect the next token to publish it again.
func lasting(st client.Status) error {
	if st.State == "unconfigured" {
		return errors.New("the tunnel no longer works: there is no auth token, such as after `adit logout`; run `adit login TOKEN`, then this command again")
	}
	if st.State != "rejected" || agent.RefusedForNow(st) {
		return nil
	}
	return fmt.Errorf("the tunnel no longer works: %s", visible.Text(st.LastError))
}

// take processes an event.
func (f *follower) take(event client.Event) error {
	id := f.view.tunnel.ID
	switch event.Type {
	case client.EventStatus:
		var st client.Status
		if err := event.Into(&st); err != nil {
			return err
		}
		f.view.takeStatus(st)
	case client.EventMissed:
		var m client.MissedEvent
		if err := event.Into(&m); err != nil {
			return err
		}
		f.behind, f.restarted = true, f.restarted || m.Restarted
	case client.EventTunnel:
		var e client.TunnelEvent
		if err := event.Into(&e); err != nil {
			return err
		}
		switch {
		case e.Tunnel.ID != id:
		case e.Action == "deleted":
			f.gone = true
		default:
			f.view.takeTunnel(e.Tunnel)
		}
	case client.EventEndpoint:
		var e client.EndpointEvent
		if err := event.Into(&e); err != nil {
			return err
		}
		if e.Endpoint.TunnelID == id {
			f.view.takeEndpoint(e.Endpoint)
		}
	case client.EventLog:
		var l client.LogEntry
		if err := event.Into(&l); err != nil {
			return err
		}
		if l.Message == notServed && l.Fields["tunnel"] == id {
			f.view.takeTrouble(l)
		}
	case client.EventRequest:
		var r client.RequestSummary
		if err := event.Into(&r); err != nil {
			return err
		}
		if r.TunnelID == id {
			f.view.takeRequest(r)
		}
	}
	return nil
}

// notServed is the log message of the daemon about a visitor whom the local service did not accept.
const notServed = "visitor not served"

// catchUp asks for what no event has reported: what happened before the first event, or while the
// daemon could not be heard. If the daemon was restarted and has forgotten the tunnel, it is
// recreated.
func (f *follower) catchUp(ctx context.Context) error {
	st, err := f.held.client.Status(ctx)
	if err != nil {
		return later(ctx, err)
	}
	f.view.takeStatus(st)
	was := f.view.tunnel
	t, err := f.held.client.Tunnel(ctx, was.ID)
	if client.IsCode(err, client.ErrorCodeNotFound) {
		if !f.restarted && !st.StartedAt.After(was.CreatedAt) {
			f.gone = true
			return nil
		}
		f.view.startAnew()
		if t, err = f.held.again(ctx, was); err == nil {
			f.view.takeNewTunnel(t)
		}
	} else if err == nil {
		f.view.takeTunnel(t)
	}
	if err != nil {
		return later(ctx, err)
	}
	f.behind, f.restarted = false, false
	return nil
}

// later returns nil if err means that the daemon is lost again: the next event is the time to ask.
func later(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, client.ErrNotRunning) {
		return nil
	}
	return err
}

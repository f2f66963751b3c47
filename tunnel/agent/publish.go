package agent

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"adit/tunnel/agent/feed"
)

// publish tells waiters and the feed what has changed since the last call. It must be called
// without holding a.mu.
func (a *Agent) publish() {
	type change struct {
		kind string
		data any
	}
	var changes []change
	a.publishing.Lock()
	defer a.publishing.Unlock()
	a.mu.Lock()
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
	state := a.stateLocked()
	status := a.statusLocked()
	var since time.Time // that another session is there
	if status.ConnectedSince != nil {
		since = *status.ConnectedSince
	}
	key := fmt.Sprintf("%s %s %s %s %s %d %t", status.State, since, status.Relay, status.Transport, status.LastError, status.EndpointCount, status.Configured)
	if key != a.lastState {
		a.lastState = key
		changes = append(changes, change{EventStatus, status})
	}
	for _, t := range a.tunnels {
		now := t.snapshot(a.tunnelStateLocked(t, state))
		if t.published == nil {
			changes = append(changes, change{EventTunnel, TunnelEvent{Action: "created", Tunnel: now}})
		} else if !reflect.DeepEqual(t.published, &now) { // by pointers, so that nothing is copied
			changes = append(changes, change{EventTunnel, TunnelEvent{Action: "changed", Tunnel: now}})
		}
		was := t.published != nil && t.published.State == TunnelRunning
		switch is := now.State == TunnelRunning; {
		case is && !was:
			changes = append(changes, change{EventEndpoint, EndpointEvent{Action: "up", Endpoint: t.endpoint(TunnelRunning)}})
		case was && !is:
			changes = append(changes, change{EventEndpoint, EndpointEvent{Action: "down", Endpoint: t.endpoint(now.State)}})
		}
		t.published = &now
	}
	a.mu.Unlock()
	for _, c := range changes {
		a.feed.Publish(c.kind, c.data)
	}
}

// waitChangeLocked returns a channel that is closed on the next change.
func (a *Agent) waitChangeLocked() <-chan struct{} {
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

// publishActivity publishes the amount of traffic, once a second while there is any. Otherwise it
// sleeps.
func (a *Agent) publishActivity(ctx context.Context) {
	look := time.NewTimer(time.Hour)
	defer look.Stop()
	look.Stop()
	last := map[string]Endpoint{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.activity:
		case <-look.C:
		}
		moved, open := false, false
		now := map[string]Endpoint{}
		for _, e := range a.Endpoints() {
			now[e.TunnelID] = e
			open = open || e.Connections.Open > 0
			if before, ok := last[e.TunnelID]; ok && before != e || !ok && (e.Connections.Total > 0 || e.Error != "") {
				moved = true
				a.feed.Publish(EventEndpoint, EndpointEvent{Action: "changed", Endpoint: e})
			}
		}
		last = now
		if moved {
			a.feed.Publish(EventStatus, a.Status())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		switch {
		case moved:
			look.Reset(0)
		case open: // bytes may still pass over connections that stay open
			look.Reset(4 * time.Second)
		default:
			look.Stop()
		}
	}
}

// Subscribe reads the feed from the event after the id after; if nil, from the next one.
func (a *Agent) Subscribe(after *uint64) *feed.Subscription { return a.feed.Subscribe(after) }

// Publish puts an event of another part of the daemon (such as a log line) into the feed.
func (a *Agent) Publish(kind string, data any) { a.feed.Publish(kind, data) }

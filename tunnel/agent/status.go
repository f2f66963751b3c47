package agent

import (
	"cmp"
	"maps"
	"os"
	"runtime"
	"slices"

	"adit/internal/monotime"
	"adit/tunnel/agent/forward"
)

// Status returns the state of the agent as a whole.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.statusLocked()
}

func (a *Agent) statusLocked() Status {
	s := Status{
		Configured: a.login.configured(),
		State:      a.stateLocked(),
		Version:    a.cfg.Version,
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		PID:        os.Getpid(),
		StartedAt:  monotime.Wall(a.started),
		RunBy:      a.cfg.RunBy,
		Bytes:      a.forward.Bytes(),
	}
	s.Connected = s.State == StateConnected
	if s.Configured {
		s.Relay = a.login.token.Relay
	}
	if a.cur != nil && a.cur.Alive() {
		stats := a.cur.Link.Stats()
		s.Relay = a.cur.Addr
		s.ClientName = a.cur.Welcome.ClientName
		s.Transport = string(a.cur.Link.Transport())
		s.RTTMillis = float64(stats.RTT.Microseconds()) / 1000
		if s.Connected {
			since := monotime.Wall(a.cur.Since)
			s.ConnectedSince = &since
		}
	}
	s.LastError = a.errorLocked(s.State)
	for _, t := range a.tunnels {
		if a.tunnelStateLocked(t, s.State) == TunnelRunning {
			s.EndpointCount++
		}
	}
	return s
}

// errorLocked says what is wrong in the given state.
func (a *Agent) errorLocked(state string) string {
	switch {
	case state == StateConnected || state == StatePaused:
	case a.standing.lastError != "":
		return a.standing.lastError
	case state == StateReconnecting && a.cur != nil && a.cur.Draining():
		return "the relay is shutting down; looking for another session"
	case state == StateReconnecting:
		return "the relay has not answered within the last keep-alive interval; trying again"
	}
	if len(a.notices) > 0 {
		return a.notices[len(a.notices)-1]
	}
	return ""
}

func (a *Agent) stateLocked() string {
	switch {
	case !a.login.configured():
		return StateUnconfigured
	case a.login.auth.Paused:
		return StatePaused
	case a.cur != nil && a.cur.Alive():
		if a.cur.Fresh() && !a.cur.Draining() {
			return StateConnected
		}
		return StateReconnecting
	case a.standing.rejected:
		return StateRejected
	case a.standing.known:
		return StateReconnecting
	}
	return StateConnecting
}

// Endpoints returns the public faces of the running tunnels.
func (a *Agent) Endpoints() []Endpoint {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.stateLocked()
	out := []Endpoint{}
	for _, t := range a.sortedLocked() {
		if a.tunnelStateLocked(t, state) == TunnelRunning {
			out = append(out, t.endpoint(TunnelRunning))
		}
	}
	return out
}

// sortedLocked returns the tunnels, oldest first.
func (a *Agent) sortedLocked() []*tunnel {
	return slices.SortedFunc(maps.Values(a.tunnels), func(x, y *tunnel) int {
		return cmp.Or(x.created.Compare(y.created), cmp.Compare(x.id, y.id))
	})
}

// running returns the forwarding tunnels of those that are not stopped.
func (a *Agent) running() []*forward.Tunnel {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*forward.Tunnel, 0, len(a.tunnels))
	for _, t := range a.tunnels {
		if !t.stopped {
			list = append(list, t.forward)
		}
	}
	return list
}

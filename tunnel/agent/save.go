package agent

import (
	"maps"
	"slices"

	"adit/tunnel/agent/state"
)

// saveAuth writes the token and the session's state. It logs a failure.
func (a *Agent) saveAuth() error {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	auth := a.login.toSave()
	a.mu.Unlock()
	err := a.state.SaveAuth(auth)
	if err != nil {
		a.log.Error("session state not saved", "error", err)
	}
	return err
}

// saveTunnels writes what must outlive the process. If it fails, the session's claimAll retries as
// soon as possible.
func (a *Agent) saveTunnels() error {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	v := state.Tunnels{
		Tunnels:  []state.Tunnel{},
		Granted:  maps.Clone(a.granted),
		Releases: slices.Sorted(maps.Keys(a.releases)),
	}
	for _, t := range a.sortedLocked() {
		switch {
		case t.spec.Ephemeral:
			// The relay keeps the claim for as long as this client exists, so the next start gives
			// back what nobody knows any more.
			v.Releases = append(v.Releases, t.id)
		case t.declared:
			v.Granted[t.id] = t.grant
		default:
			v.Tunnels = append(v.Tunnels, state.Tunnel{ID: t.id, CreatedAt: t.created, Stopped: t.stopped, Spec: t.spec, Granted: t.grant})
		}
	}
	a.mu.Unlock()
	err := a.state.SaveTunnels(v)
	a.unsaved.Store(err != nil)
	return err
}

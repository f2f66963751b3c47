package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"adit/tunnel/agent/definition"
)

// declaredID returns the id of the declared tunnel with that name. It is the same after a restart,
// so that the tunnel keeps its public address.
func declaredID(name string) string {
	sum := sha256.Sum256([]byte("declared\x00" + name))
	return "tun_" + hex.EncodeToString(sum[:10])
}

// Declare replaces the declared tunnels with those of specs, which are identified by their names.
// Unchanged ones are left alone. If one spec is wrong, nothing changes, and a
// *definition.DeclareError says which. Declare waits for a change in progress.
func (a *Agent) Declare(ctx context.Context, specs []definition.Tunnel) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	wanted, err := definition.Declared(specs, a.dialer.Instance, a.origins.Guard, a.taken)
	if err != nil {
		return err
	}
	for _, t := range a.undeclared(wanted) {
		if err := a.remove(ctx, t); err != nil {
			return err
		}
	}
	changed, cut, led := a.setDeclared(wanted)
	for _, t := range cut {
		t.forward.Cut()
	}
	for _, t := range led {
		t.forward.CutStrays()
	}
	if !changed {
		return nil
	}
	a.mu.Lock()
	l := a.cur
	a.mu.Unlock()
	// Declarations take effect without being saved: only their addresses are saved, and that is
	// retried.
	if err := a.saveTunnels(); err != nil {
		a.log.Error("tunnels not saved", "error", err)
	}
	l.look()
	a.publish()
	return nil
}

// setDeclared replaces the declared tunnels with those of wanted. It returns whether anything
// changed, the tunnels whose visitors now belong to another service, and the tunnels whose paths
// now lead elsewhere.
func (a *Agent) setDeclared(wanted []definition.Tunnel) (changed bool, cut, led []*tunnel) {
	now := time.Now().UTC()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, want := range wanted {
		id := declaredID(want.Name)
		t := a.tunnels[id]
		if t == nil {
			t = newTunnel(id, want, now.Add(time.Duration(i)))
			t.declared, t.grant = true, a.granted[id].Of(want)
			delete(a.releases, id)
			a.tunnels[id] = t
			changed = true
			continue
		}
		if t.spec.Equal(want) {
			continue
		}
		changed = true
		if t.spec.LocalIP != want.LocalIP || t.spec.LocalPort != want.LocalPort || t.spec.Type != want.Type || t.spec.Private() != want.Private() {
			cut = append(cut, t)
		} else if !slices.Equal(t.spec.Paths, want.Paths) {
			led = append(led, t)
		}
		if want.MovedFrom(t.spec) {
			t.grant = t.grant.GaveUp()
		}
		before, alike := t.claim(false), t.spec.ServesAlike(want)
		t.setSpec(want)
		if !t.claim(false).Equal(before) || t.failure != "" || !alike {
			t.rev++
			t.failure = ""
		}
	}
	return changed, cut, led
}

// taken reports whether a tunnel that is not declared has the name.
func (a *Agent) taken(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tunnels {
		if !t.declared && t.spec.Name == name {
			return true
		}
	}
	return false
}

// undeclared returns the declared tunnels that are no longer wanted.
func (a *Agent) undeclared(wanted []definition.Tunnel) []*tunnel {
	keep := make(map[string]bool, len(wanted))
	for _, want := range wanted {
		keep[declaredID(want.Name)] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*tunnel
	for id, t := range a.tunnels {
		if t.declared && !keep[id] {
			out = append(out, t)
			delete(a.granted, id)
		}
	}
	return out
}

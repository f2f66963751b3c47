package agent

import (
	"context"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
)

// Change changes a tunnel. If the relay refuses the change, nothing changes.
func (a *Agent) Change(ctx context.Context, id string, patch definition.Patch) (Tunnel, error) {
	if !a.turn.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.turn.Unlock()
	t, no := a.editable(id)
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	before := t.spec
	a.mu.Unlock()
	want, no := before.Patched(patch).Normalize(a.origins.Guard)
	if no == nil {
		no = a.checkHosts(ctx, want, before)
	}
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	want.Name, no = a.nameLocked(want, id)
	a.mu.Unlock()
	if no != nil {
		return Tunnel{}, no
	}
	if err := a.apply(ctx, t, want); err != nil {
		return Tunnel{}, err
	}
	got, _ := a.Tunnel(id)
	return got, nil
}

// apply changes t's spec, at the relay first.
func (a *Agent) apply(ctx context.Context, t *tunnel, want definition.Tunnel) error {
	a.mu.Lock()
	before, given, fault, failure := t.spec, t.grant, t.fault, t.failure
	old := t.claim(false)
	wasOrigin := t.forward.Local()
	cutTried := t.setSpec(want)
	moved := want.MovedFrom(before)
	if moved {
		url := t.grant.PublicURL // until there is another
		t.grant = t.grant.GaveUp()
		t.grant.PublicURL = url
	}
	changed := !t.claim(false).Equal(old) || fault != "" || failure != "" || !before.ServesAlike(want)
	if changed {
		t.rev++
	}
	ask := changed && !t.stopped && a.login.configured() && a.cur != nil
	a.mu.Unlock()
	undo := func() {
		a.mu.Lock()
		t.setSpec(before)
		t.grant, t.fault, t.failure = given, fault, failure
		if changed {
			t.rev++
		}
		a.mu.Unlock()
		cutTried()
	}
	if ask {
		if no := a.claimNow(ctx, t); no != nil {
			a.mu.Lock()
			forgotten := t.grant.Domain == "" && t.grant.RemotePort == 0
			a.mu.Unlock()
			undo()
			a.mu.Lock()
			if no.Code == refusal.CodeRelayRejected && t.first.live != nil && failure == "" && !forgotten {
				t.first.rev = t.rev // the relay left the old claim as it was
			}
			l := a.cur
			a.mu.Unlock()
			l.look() // one that did not answer may have taken the change
			return no
		}
	} else if changed {
		a.mu.Lock()
		t.failure = ""
		if moved && (t.first.live == nil || t.first.rev != t.rev) { // where to, the relay says when there is a session
			t.grant.PublicURL = ""
		}
		a.mu.Unlock()
	}
	if err := a.saveTunnels(); err != nil {
		undo()
		a.ensureClaimed(t)
		return err
	}
	if t.forward.Local() != wasOrigin || want.Type != before.Type || want.Private() != before.Private() {
		t.forward.Cut() // their service is another's now
	} else {
		t.forward.CutStrays()
	}
	a.publish()
	if !ask {
		a.ensureClaimed(t)
	}
	return nil
}

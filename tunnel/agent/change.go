package agent

import (
	"context"

	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// Change changes a tunnel. If the relay refuses the change, all stays as it was.
func (a *Agent) Change(ctx context.Context, id string, patch TunnelPatch) (Tunnel, error) {
	if !a.control.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.control.Unlock()
	t, no := a.editable(id)
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	before := t.spec
	a.mu.Unlock()
	want := patched(before, patch)
	if private := want.private(); private != before.private() {
		// What only the old mode has goes with it, unless asked for.
		if patch.Domain == nil {
			want.Domain = ""
		}
		if patch.RemotePort == nil {
			want.RemotePort = 0
		}
		if patch.Visitors == nil && !private {
			want.Visitors = nil
		}
	}
	if patch.Type != nil && *patch.Type != before.Type {
		// What only the old type has goes with it, unless asked for.
		if patch.RemotePort == nil {
			want.RemotePort = 0
		}
		if patch.Domain == nil && want.numbered() {
			want.Domain = ""
		}
		if patch.LocalScheme == nil {
			want.LocalScheme = ""
		}
		if patch.HostHeader == nil {
			want.HostHeader = ""
		}
		if patch.RequestHeaders == nil && !web(want.Type) {
			want.RequestHeaders = wire.HeaderChanges{}
		}
		if patch.ResponseHeaders == nil && !web(want.Type) {
			want.ResponseHeaders = wire.HeaderChanges{}
		}
		if patch.Paths == nil && !web(want.Type) {
			want.Paths = nil
		}
	}
	spec, no := a.normalize(want)
	if no == nil {
		no = a.checkHosts(ctx, spec, before)
	}
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	spec.Name, no = a.nameLocked(spec, id)
	a.mu.Unlock()
	if no != nil {
		return Tunnel{}, no
	}
	if err := a.apply(ctx, t, spec); err != nil {
		return Tunnel{}, err
	}
	got, _ := a.Tunnel(id)
	return got, nil
}

// apply gives t a new spec, at the relay first.
func (a *Agent) apply(ctx context.Context, t *tunnel, spec TunnelSpec) error {
	a.mu.Lock()
	before, given, fault, failure := t.spec, t.grant, t.fault, t.failure
	old := t.claim(false)
	wasOrigin := t.route.Load().service.String()
	t.setSpec(spec)
	tried := t.route.Load()
	moved := spec.movedFrom(before)
	if moved {
		url := t.grant.PublicURL // until there is another
		t.grant = t.grant.gaveUp()
		t.grant.PublicURL = url
	}
	changed := !t.claim(false).Equal(old) || fault != "" || failure != "" || !servesAlike(before, spec)
	if changed {
		t.rev++
	}
	ask := changed && !t.stopped && a.auth.Token != "" && a.cur != nil
	a.mu.Unlock()
	undo := func() {
		a.mu.Lock()
		t.setSpec(before)
		t.grant, t.fault, t.failure = given, fault, failure
		if changed {
			t.rev++
		}
		a.mu.Unlock()
		t.undo(tried)
	}
	if ask {
		if no := a.claimNow(ctx, t); no != nil {
			a.mu.Lock()
			forgotten := t.grant.Domain == "" && t.grant.RemotePort == 0
			a.mu.Unlock()
			undo()
			a.mu.Lock()
			if no.Code == refusal.CodeRelayRejected && t.live != nil && failure == "" && !forgotten {
				t.claimed = t.rev // the relay left the old claim as it was
			}
			l := a.cur
			a.mu.Unlock()
			l.look() // one that did not answer may have taken the change
			return no
		}
	} else if changed {
		a.mu.Lock()
		t.failure = ""
		if moved && (t.live == nil || t.claimed != t.rev) { // where to, the relay says when there is a session
			t.grant.PublicURL = ""
		}
		a.mu.Unlock()
	}
	if err := a.saveTunnels(); err != nil {
		undo()
		a.ensureClaimed(t)
		return err
	}
	if t.route.Load().service.String() != wasOrigin || spec.Type != before.Type || spec.private() != before.private() {
		t.conns.abort() // their service is another's now
	} else {
		t.cutStrays()
	}
	a.publish()
	if !ask {
		a.ensureClaimed(t)
	}
	return nil
}

package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"adit/tunnel/wire"
)

// Tunnels returns all tunnels, oldest first.
func (a *Agent) Tunnels() []Tunnel {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.stateLocked()
	out := make([]Tunnel, 0, len(a.tunnels))
	for _, t := range a.sortedLocked() {
		out = append(out, t.snapshot(a.tunnelStateLocked(t, state)))
	}
	return out
}

// Tunnel returns one tunnel.
func (a *Agent) Tunnel(id string) (Tunnel, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tunnels[id]
	if t == nil {
		return Tunnel{}, false
	}
	return t.snapshot(a.tunnelStateLocked(t, a.stateLocked())), true
}

// Create adds a tunnel and starts it. It is there only if the relay has granted
// it, or the agent is paused; then it waits.
func (a *Agent) Create(ctx context.Context, spec TunnelSpec) (Tunnel, error) {
	if !a.control.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.control.Unlock()
	spec, no := a.normalize(spec)
	if no == nil {
		no = a.checkHost(ctx, spec.LocalIP, spec.LocalPort)
	}
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	configured := a.auth.Token != ""
	spec.Name, no = a.nameLocked(spec, "")
	a.mu.Unlock()
	if no != nil {
		return Tunnel{}, no
	}
	if !configured {
		return Tunnel{}, notConfigured()
	}
	t := newTunnel(newID("tun_"), spec, time.Now().UTC())
	// Should the power go between the claim and the tunnel's being saved, the
	// claim is given back at the next start.
	a.mu.Lock()
	a.releases[t.id], a.making = true, t.id
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.making = ""
		a.mu.Unlock()
	}()
	if err := a.saveTunnels(); err != nil {
		a.forgetRelease(t.id)
		return Tunnel{}, err
	}
	if no := a.claimNow(ctx, t); no != nil {
		a.unmake(t, no.Code == CodeRelayUnreachable)
		return Tunnel{}, no
	}
	a.mu.Lock()
	a.tunnels[t.id] = t
	delete(a.releases, t.id)
	a.mu.Unlock()
	if err := a.saveTunnels(); err != nil {
		a.mu.Lock()
		delete(a.tunnels, t.id)
		a.mu.Unlock()
		a.unmake(t, true)
		return Tunnel{}, err
	}
	a.log.Info("tunnel created", "tunnel", t.id, "name", spec.Name, "type", spec.Type)
	a.publish()
	a.ensureClaimed(t)
	got, _ := a.Tunnel(t.id)
	return got, nil
}

// unmake forgets a tunnel that did not come to be. With owed, its claim is given
// back when there is a session.
func (a *Agent) unmake(t *tunnel, owed bool) {
	a.mu.Lock()
	t.deleted = true
	if t.live != nil {
		t.live.unregister(t.number, t)
	}
	if owed {
		a.releases[t.id] = true
	} else {
		delete(a.releases, t.id)
	}
	l := a.cur
	a.mu.Unlock()
	if owed && l != nil && l.alive() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := l.ctl.release(ctx, t.id, false); err == nil {
			a.forgetRelease(t.id)
		}
	}
	if err := a.saveTunnels(); err != nil {
		a.log.Error("tunnels not saved", "error", err)
	}
}

func (a *Agent) forgetRelease(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.releases, id)
}

// ensureClaimed sees to it that t is claimed on the session in use, should that
// have changed while t was being claimed on the one before.
func (a *Agent) ensureClaimed(t *tunnel) {
	a.mu.Lock()
	l := a.cur
	fits := l == nil || t.live == l && t.claimed == t.rev
	a.mu.Unlock()
	if fits {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := l.claim(ctx, t, true); err != nil {
		a.log.Warn("tunnel not claimed", "tunnel", t.id, "error", err)
	}
	a.publish()
}

// nameLocked returns spec's name, or a free one made of type and port. A name is
// given to one tunnel only, so that it can be used to speak of it.
func (a *Agent) nameLocked(spec TunnelSpec, own string) (string, *Error) {
	taken := map[string]bool{}
	for _, t := range a.tunnels {
		if t.id != own {
			taken[t.spec.Name] = true
		}
	}
	if spec.Name != "" {
		if taken[spec.Name] {
			return "", invalid("name", "another tunnel is called %q already", spec.Name)
		}
		return spec.Name, nil
	}
	name := fmt.Sprintf("%s-%d", spec.Type, spec.LocalPort)
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d-%d", spec.Type, spec.LocalPort, i)
	}
	return name, nil
}

// editable returns the tunnel id if a request may change it. The caller holds
// control, so no other request changes it meanwhile.
func (a *Agent) editable(id string) (*tunnel, *Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tunnels[id]
	if t == nil {
		return nil, notFound(id)
	}
	if t.declared {
		return nil, declaredError()
	}
	return t, nil
}

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
	if patch.Type != nil && *patch.Type != before.Type {
		// What only the old type has goes with it, unless asked for.
		if patch.RemotePort == nil {
			want.RemotePort = 0
		}
		if patch.Domain == nil && (want.Type == wire.TypeTCP || want.Type == wire.TypeUDP) {
			want.Domain = ""
		}
		if patch.LocalScheme == nil {
			want.LocalScheme = ""
		}
		if patch.HostHeader == nil {
			want.HostHeader = ""
		}
	}
	spec, no := a.normalize(want)
	if no == nil && (spec.LocalIP != before.LocalIP || spec.LocalPort != before.LocalPort) {
		no = a.checkHost(ctx, spec.LocalIP, spec.LocalPort)
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
	before, given, failure := t.spec, t.grant, t.failure
	old := t.claim(false)
	wasOrigin := t.route.Load().local
	t.setSpec(spec)
	if spec.Type != before.Type || spec.Domain != before.Domain {
		t.grant.Domain = ""
	}
	if spec.Type != before.Type || spec.RemotePort != before.RemotePort {
		t.grant.RemotePort = 0
	}
	changed := t.claim(false) != old || failure != ""
	if changed {
		t.rev++
	}
	ask := changed && !t.stopped && a.auth.Token != "" && a.cur != nil
	a.mu.Unlock()
	undo := func() {
		a.mu.Lock()
		t.setSpec(before)
		t.grant, t.failure = given, failure
		if changed {
			t.rev++
		}
		a.mu.Unlock()
	}
	if ask {
		if no := a.claimNow(ctx, t); no != nil {
			undo()
			a.mu.Lock()
			if t.live != nil && failure == "" {
				t.claimed = t.rev // the relay left the old claim as it was
			}
			a.mu.Unlock()
			return no
		}
	} else if changed {
		a.mu.Lock()
		t.failure = ""
		a.mu.Unlock()
	}
	if err := a.saveTunnels(); err != nil {
		undo()
		a.ensureClaimed(t)
		return err
	}
	if t.route.Load().local != wasOrigin || spec.Type != before.Type {
		t.conns.abort() // their service is another's now
	}
	a.publish()
	if !ask {
		a.ensureClaimed(t)
	}
	return nil
}

// StartTunnel starts a stopped or failed tunnel. Without a session it waits.
func (a *Agent) StartTunnel(ctx context.Context, id string) (Tunnel, error) {
	if !a.control.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.control.Unlock()
	t, no := a.editable(id)
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	configured := a.auth.Token != ""
	wasStopped, failure := t.stopped, t.failure
	runs := !t.stopped && t.failure == ""
	t.stopped, t.failure = false, ""
	connected := a.stateLocked() == StateConnected
	a.mu.Unlock()
	if !configured {
		a.mu.Lock()
		t.stopped, t.failure = wasStopped, failure
		a.mu.Unlock()
		return Tunnel{}, notConfigured()
	}
	if !runs {
		a.publish() // starting
		if connected {
			if no := a.claimNow(ctx, t); no != nil && no.Code == CodeRelayRejected {
				a.mu.Lock()
				t.stopped, t.failure = wasStopped, no.Message
				a.mu.Unlock()
				a.publish()
				return Tunnel{}, no
			}
		}
		if err := a.saveTunnels(); err != nil {
			return Tunnel{}, err
		}
		a.publish()
		a.ensureClaimed(t)
	}
	got, _ := a.Tunnel(id)
	return got, nil
}

// StopTunnel stops a tunnel and ends its visitors' connections; its public
// address is kept for it.
func (a *Agent) StopTunnel(ctx context.Context, id string) (Tunnel, error) {
	if !a.control.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.control.Unlock()
	t, no := a.editable(id)
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	was := t.stopped
	t.stopped = true
	a.mu.Unlock()
	if !was {
		if err := a.saveTunnels(); err != nil {
			a.mu.Lock()
			t.stopped = false
			a.mu.Unlock()
			return Tunnel{}, err
		}
		a.publish()
		a.withdraw(ctx, t, true)
		a.publish()
	}
	got, _ := a.Tunnel(id)
	return got, nil
}

// withdraw takes t's endpoint down, here at once and then at the relay; without
// keep its public address is given back, later if not now.
func (a *Agent) withdraw(ctx context.Context, t *tunnel, keep bool) {
	a.mu.Lock()
	l, second := t.live, a.second
	t.live, t.failure = nil, ""
	if l != nil {
		l.unregister(t.number, t)
	}
	if t.other.live != nil {
		t.other.live.unregister(t.other.number, t)
	}
	t.other = held{}
	cur := a.cur
	a.mu.Unlock()
	t.conns.abort()
	if second != nil && second.alive() && l != nil {
		defer a.withdrawSecond(ctx, second, t)
	}
	if cur == nil || !cur.alive() || keep && l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	t.claiming.Lock() // after a claim that is on its way
	defer t.claiming.Unlock()
	err := cur.ctl.release(ctx, t.id, keep)
	if err != nil {
		a.log.Warn("claim not given back yet", "tunnel", t.id, "error", err)
	}
	if !keep && (err == nil || isProblem(err) && !unavailable(err)) {
		a.forgetRelease(t.id)
		if err := a.saveTunnels(); err != nil {
			a.log.Error("tunnels not saved", "error", err)
		}
	}
}

// withdrawSecond takes t's endpoint down on the second session too. Its name is
// the first's to give back.
func (a *Agent) withdrawSecond(ctx context.Context, l *live, t *tunnel) {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	t.claiming.Lock() // after a claim that is on its way
	defer t.claiming.Unlock()
	a.mu.Lock()
	if t.other.live == l {
		l.unregister(t.other.number, t)
		t.other = held{}
	}
	a.mu.Unlock()
	if err := l.ctl.release(ctx, t.id, true); err != nil {
		a.log.Debug("second endpoint not taken down", "tunnel", t.id, "error", err)
	}
}

// DeleteTunnel removes a tunnel and gives its public address back, as soon as
// there is a session if there is none now.
func (a *Agent) DeleteTunnel(ctx context.Context, id string) error {
	if !a.control.TryLock() {
		return busy()
	}
	defer a.control.Unlock()
	t, no := a.editable(id)
	if no != nil {
		return no
	}
	return a.remove(ctx, t)
}

func (a *Agent) remove(ctx context.Context, t *tunnel) error {
	a.mu.Lock()
	state := a.tunnelStateLocked(t, a.stateLocked())
	delete(a.tunnels, t.id)
	a.releases[t.id] = true
	t.deleted = true
	a.mu.Unlock()
	if err := a.saveTunnels(); err != nil {
		a.mu.Lock()
		a.tunnels[t.id] = t
		delete(a.releases, t.id)
		t.deleted = false
		a.mu.Unlock()
		return err
	}
	a.withdraw(ctx, t, false)
	a.mu.Lock()
	gone := t.snapshot(TunnelStopped)
	down := t.endpoint(TunnelStopped)
	a.mu.Unlock()
	if state == TunnelRunning {
		a.feed.publish(EventEndpoint, EndpointEvent{Action: "down", Endpoint: down})
	}
	a.feed.publish(EventTunnel, TunnelEvent{Action: "deleted", Tunnel: gone})
	a.publish()
	a.log.Info("tunnel deleted", "tunnel", t.id)
	return nil
}

// saveTunnels writes what must outlive the process.
func (a *Agent) saveTunnels() error {
	a.saving.Lock()
	defer a.saving.Unlock()
	a.mu.Lock()
	v := savedTunnels{
		Version: tunnelsVersion, Tunnels: []savedTunnel{},
		Granted:  maps.Clone(a.granted),
		Releases: slices.Sorted(maps.Keys(a.releases)),
	}
	for _, t := range a.sortedLocked() {
		switch {
		case t.spec.Ephemeral:
			// Its claim dies with the session, so it leaves nothing to give back.
		case t.declared:
			v.Granted[t.id] = t.grant
		default:
			v.Tunnels = append(v.Tunnels, savedTunnel{ID: t.id, CreatedAt: t.created, Stopped: t.stopped, Spec: t.spec, Granted: t.grant})
		}
	}
	a.mu.Unlock()
	return a.store.saveTunnels(v)
}

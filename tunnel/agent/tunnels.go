package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/state"
)

// unmakeWait is how long a failed request waits for the relay to take back what it gave.
const unmakeWait = 2 * time.Second

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

// Create adds a tunnel and starts it. The tunnel is added only if the relay grants it, or if the
// agent is paused, in which case it waits.
func (a *Agent) Create(ctx context.Context, want definition.Tunnel) (Tunnel, error) {
	if !a.turn.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.turn.Unlock()
	want, no := want.Normalize(a.origins.Guard)
	if no == nil {
		no = a.checkHosts(ctx, want, definition.Tunnel{})
	}
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	configured := a.login.configured()
	want.Name, no = a.nameLocked(want, "")
	a.mu.Unlock()
	if no != nil {
		return Tunnel{}, no
	}
	if !configured {
		return Tunnel{}, notConfigured()
	}
	t := newTunnel(state.NewID("tun_"), want, time.Now().UTC())
	// If the power fails between the claim and saving the tunnel, the claim is given back at the
	// next start.
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
		a.unmake(t, no.Code == refusal.CodeRelayUnreachable)
		return Tunnel{}, no
	}
	a.mu.Lock()
	a.tunnels[t.id] = t
	t.holders.left = time.Now()
	delete(a.releases, t.id)
	a.mu.Unlock()
	if want.Held {
		a.pokeHolds()
	}
	if err := a.saveTunnels(); err != nil {
		a.mu.Lock()
		delete(a.tunnels, t.id)
		told := t.published
		a.mu.Unlock()
		a.unmake(t, true)
		if told != nil { // by a change of another's meanwhile
			a.tellDeleted(t, told.State == TunnelRunning)
		}
		return Tunnel{}, err
	}
	a.log.Info("tunnel created", "tunnel", t.id, "name", want.Name, "type", want.Type)
	a.publish()
	a.ensureClaimed(t)
	a.mu.Lock()
	second := a.second
	a.mu.Unlock()
	second.look() // what the claim had it look for was not among the tunnels yet
	got, _ := a.Tunnel(t.id)
	return got, nil
}

// unmake forgets a tunnel whose creation failed. With owed, its claim is given back on every
// session that has it, or once there is a session.
func (a *Agent) unmake(t *tunnel, owed bool) {
	a.mu.Lock()
	t.deleted, a.making = true, ""
	if owed {
		a.releases[t.id] = true
	} else {
		delete(a.releases, t.id)
	}
	a.mu.Unlock()
	if err := a.saveTunnels(); err != nil {
		a.log.Error("tunnels not saved", "error", err)
	}
	if !owed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unmakeWait)
	defer cancel()
	a.withdraw(ctx, t, false)
}

func (a *Agent) forgetRelease(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.releases, id)
}

// ensureClaimed makes sure that t is claimed on the session in use, in case that changed while t
// was being claimed on the previous one.
func (a *Agent) ensureClaimed(t *tunnel) {
	a.mu.Lock()
	l := a.cur
	fits := l == nil || t.first.by(l, t.rev)
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

// nameLocked returns want's name, or an unused one made of type and port. Names are unique, so that
// they can identify tunnels.
func (a *Agent) nameLocked(want definition.Tunnel, own string) (string, *refusal.Error) {
	taken := map[string]bool{}
	for _, t := range a.tunnels {
		if t.id != own {
			taken[t.spec.Name] = true
		}
	}
	if want.Name != "" {
		if taken[want.Name] {
			return "", refusal.Invalid("name", "another tunnel is called %q already", want.Name)
		}
		return want.Name, nil
	}
	name := fmt.Sprintf("%s-%d", want.Type, want.LocalPort)
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d-%d", want.Type, want.LocalPort, i)
	}
	return name, nil
}

// editable returns the tunnel id if a request may change it. The caller holds the turn, so no other
// request changes it in the meantime.
func (a *Agent) editable(id string) (*tunnel, *refusal.Error) {
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

// checkHosts refuses services of want that before did not have and whose names currently resolve to
// addresses to which no tunnel may lead.
func (a *Agent) checkHosts(ctx context.Context, want, before definition.Tunnel) *refusal.Error {
	refusals := make([]*refusal.Error, 1+len(want.Paths))
	var all sync.WaitGroup
	if want.LocalIP != before.LocalIP || want.LocalPort != before.LocalPort {
		all.Go(func() { refusals[0] = a.checkHost(ctx, want.Origin()) })
	}
	for i, p := range want.Paths {
		if !slices.ContainsFunc(before.Paths, func(o definition.Path) bool { return o.LocalIP == p.LocalIP && o.LocalPort == p.LocalPort }) {
			all.Go(func() {
				if err := a.checkHost(ctx, want.Fork(p).Origin()); err != nil {
					refusals[1+i] = definition.OfPath(p.Path, err)
				}
			})
		}
	}
	all.Wait()
	return cmp.Or(refusals...)
}

func (a *Agent) checkHost(ctx context.Context, service origin.Service) *refusal.Error {
	if ip, err := a.origins.Refused(ctx, service); err != nil {
		return refusal.Invalid("local_ip", "%s is %s: %v", service.Host, ip, err)
	}
	return nil
}

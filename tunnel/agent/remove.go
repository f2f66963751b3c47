package agent

import (
	"context"
	"sync"
	"time"

	"adit/tunnel/agent/control"
)

func (a *Agent) remove(ctx context.Context, t *tunnel) error {
	a.mu.Lock()
	state := a.tunnelStateLocked(t, a.stateLocked())
	delete(a.tunnels, t.id)
	a.releases[t.id] = true
	t.deleted = true
	a.mu.Unlock()
	err := a.saveTunnels()
	if err != nil && !t.declared {
		a.mu.Lock()
		a.tunnels[t.id] = t
		delete(a.releases, t.id)
		t.deleted = false
		a.mu.Unlock()
		return err
	}
	if err != nil { // it is out of adit.toml, where alone it was: nobody is asked to try again
		a.log.Error("tunnels not saved", "error", err)
	}
	close(t.gone)
	a.withdraw(ctx, t, false)
	a.tellDeleted(t, state == TunnelRunning)
	a.publish()
	a.log.Info("tunnel deleted", "tunnel", t.id)
	return nil
}

// tellDeleted publishes that t is gone, and its endpoint if it was running.
func (a *Agent) tellDeleted(t *tunnel, ran bool) {
	a.mu.Lock()
	gone := t.snapshot(TunnelStopped)
	down := t.endpoint(TunnelStopped)
	a.mu.Unlock()
	a.publishing.Lock() // after a change of it that is being told
	defer a.publishing.Unlock()
	if ran {
		a.feed.Publish(EventEndpoint, EndpointEvent{Action: "down", Endpoint: down})
	}
	a.feed.Publish(EventTunnel, TunnelEvent{Action: "deleted", Tunnel: gone})
}

// secondWait is how long a request waits for the second session to take an endpoint down; on this
// side it is down already.
const secondWait = 2 * time.Second

// withdraw takes t's endpoint down, here at once and then at the relay, which is told later if that
// is not possible now. Unless keep is set, its public address is given back.
func (a *Agent) withdraw(ctx context.Context, t *tunnel, keep bool) {
	a.mu.Lock()
	left := a.leftWithLocked(t)
	t.unclaimLocked()
	t.failure = ""
	cur, second := a.cur, a.second
	slow := second != nil && t.asking == second
	a.mu.Unlock()
	t.forward.Cut()
	if second != nil && second.Alive() {
		defer a.withdrawSecond(ctx, second, t)
	}
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	// Wait for a claim in progress, except one on the second session: that may take long, and will
	// find at its end that it is no longer wanted.
	if !slow {
		if !lockFor(ctx, &t.claiming) {
			if keep && cur != nil {
				cur.owe(t, ctx.Err()) // else what is under way sees that it is deleted
				cur.look()
			}
			return
		}
		defer t.claiming.Unlock()
	}
	a.mu.Lock()
	t.unclaimLocked()
	a.mu.Unlock()
	t.forward.Cut()
	var others sync.WaitGroup
	defer others.Wait()
	for _, l := range left {
		others.Go(func() { l.letGo(ctx, t) })
	}
	if cur == nil || !cur.Alive() {
		return
	}
	err := cur.Control.Release(ctx, t.id, keep)
	if err != nil {
		a.log.Warn("claim not given back yet", "tunnel", t.id, "error", err)
		if keep {
			cur.owe(t, err)
		}
		cur.look() // it tries again
	}
	if !keep && (err == nil || control.Refused(err)) {
		a.forgetRelease(t.id)
		if err := a.saveTunnels(); err != nil {
			a.log.Error("tunnels not saved", "error", err)
		}
	}
}

// claimPace is how often lockFor tries.
const claimPace = 10 * time.Millisecond

// lockFor locks mu, unless ctx ends first.
func lockFor(ctx context.Context, mu *sync.Mutex) bool {
	for !mu.TryLock() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(claimPace):
		}
	}
	return true
}

// withdrawSecond takes t's endpoint down on the second session too. Giving its name back is left to
// the first.
func (a *Agent) withdrawSecond(ctx context.Context, l *live, t *tunnel) {
	ctx, cancel := context.WithTimeout(ctx, secondWait)
	defer cancel()
	a.mu.Lock()
	slow := t.asking == l
	a.mu.Unlock()
	if slow {
		return // what is on its way ends it
	}
	t.claiming.Lock()
	defer t.claiming.Unlock()
	a.mu.Lock()
	t.unclaimLocked()
	a.mu.Unlock()
	if err := l.Control.Release(ctx, t.id, true); err != nil {
		a.log.Debug("second endpoint not taken down yet", "tunnel", t.id, "error", err)
		l.owe(t, err)
		l.look()
	}
}

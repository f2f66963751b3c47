package agent

import (
	"context"

	"adit/tunnel/agent/refusal"
)

// StartTunnel starts a stopped or failed tunnel. If there is no session, the tunnel waits for one.
func (a *Agent) StartTunnel(ctx context.Context, id string) (Tunnel, error) {
	if !a.turn.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.turn.Unlock()
	t, no := a.editable(id)
	if no != nil {
		return Tunnel{}, no
	}
	a.mu.Lock()
	configured := a.login.configured()
	runs := !t.stopped && t.fault == "" && t.failure == ""
	a.mu.Unlock()
	if !configured {
		return Tunnel{}, notConfigured()
	}
	if !runs {
		if err := a.begin(ctx, t); err != nil {
			return Tunnel{}, err
		}
	}
	got, _ := a.Tunnel(id)
	return got, nil
}

// begin starts t, which is stopped or failed; the turn is held. If the relay refuses it, or if it
// cannot be saved, a tunnel that was stopped is stopped again.
func (a *Agent) begin(ctx context.Context, t *tunnel) error {
	a.mu.Lock()
	declared, faulty := t.spec, t.fault != ""
	a.mu.Unlock()
	if faulty {
		// This asks the machine for its addresses, so it must not be done with the mutex held; the
		// turn, which the caller holds, prevents changes to the spec.
		if _, no := declared.Normalize(a.origins.Guard); no != nil {
			return no
		}
	}
	a.mu.Lock()
	wasStopped := t.stopped
	t.stopped, t.fault, t.failure = false, "", "" // what was in its way is gone
	connected := a.stateLocked() == StateConnected
	a.mu.Unlock()
	a.forward.LookAgain()
	a.publish() // starting
	if connected {
		if no := a.claimNow(ctx, t); no != nil && no.Code == refusal.CodeRelayRejected {
			a.mu.Lock()
			t.stopped, t.failure = wasStopped, no.Message
			a.mu.Unlock()
			a.publish()
			return no
		}
	}
	if err := a.saveTunnels(); err != nil {
		a.mu.Lock()
		t.stopped = wasStopped
		a.mu.Unlock()
		if wasStopped {
			a.withdraw(ctx, t, true)
		}
		a.publish()
		return err
	}
	a.publish()
	a.ensureClaimed(t)
	return nil
}

// StopTunnel stops a tunnel and ends its visitors' connections. Its public address stays reserved
// for it.
func (a *Agent) StopTunnel(ctx context.Context, id string) (Tunnel, error) {
	if !a.turn.TryLock() {
		return Tunnel{}, busy()
	}
	defer a.turn.Unlock()
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

// DeleteTunnel removes a tunnel and gives its public address back, or does so once there is a
// session.
func (a *Agent) DeleteTunnel(ctx context.Context, id string) error {
	if !a.turn.TryLock() {
		return busy()
	}
	defer a.turn.Unlock()
	t, no := a.editable(id)
	if no != nil {
		return no
	}
	return a.remove(ctx, t)
}

package agent

import (
	"context"
	"sync"
	"time"

	"adit/tunnel/agent/refusal"
)

// holdGrace is how long a held tunnel outlives its last holder, so that a holder that has lost its
// connection can come back.
const holdGrace = 15 * time.Second

// parting limits how long the agent's end waits for claims to be given back; partingPace is how
// often it checks whether a control-plane request is still running.
const (
	parting     = 2 * time.Second
	partingPace = 10 * time.Millisecond
)

// lettingAgain is how long removing an unheld tunnel waits for a running control-plane request.
const lettingAgain = 200 * time.Millisecond

// Hold is one holder's share in a tunnel with definition.Tunnel.Held.
type Hold struct {
	// Gone is closed when the tunnel is gone.
	Gone <-chan struct{}
	// Release ends the hold. It may be called more than once.
	Release func()
}

// holders are the holders of a tunnel. The agent's mutex guards them.
type holders struct {
	count int
	had   bool      // there was one
	left  time.Time // when the last one went, or the tunnel came
}

// Hold keeps the tunnel id until Release.
func (a *Agent) Hold(id string) (Hold, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tunnels[id]
	switch {
	case t == nil:
		return Hold{}, notFound(id)
	case !t.spec.Held:
		return Hold{}, refusal.Invalid("held", "the tunnel %s was not created with it, so it stays even if nothing holds it", id)
	}
	t.holders.count++
	t.holders.had = true
	return Hold{Gone: t.gone, Release: sync.OnceFunc(func() { a.letGo(t) })}, nil
}

func (a *Agent) letGo(t *tunnel) {
	a.mu.Lock()
	t.holders.count--
	t.holders.left = time.Now()
	a.mu.Unlock()
	a.pokeHolds()
}

// pokeHolds makes keepHeld check for work.
func (a *Agent) pokeHolds() {
	select {
	case a.unheld <- struct{}{}:
	default:
	}
}

// keepHeld removes held tunnels that nobody holds any more, until ctx ends. It sleeps while all are
// held.
func (a *Agent) keepHeld(ctx context.Context) {
	look := time.NewTimer(time.Hour)
	defer look.Stop()
	for {
		if wait, more := a.removeUnheld(ctx); more {
			look.Reset(wait)
		} else {
			look.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-a.unheld:
		case <-look.C:
		}
	}
}

// removeUnheld removes the tunnels whose time is up, and returns how long it is until the next
// one's; more is false if all are held.
func (a *Agent) removeUnheld(ctx context.Context) (wait time.Duration, more bool) {
	wait = holdGrace
	due, next := a.dueUnheld()
	if !next.IsZero() {
		wait, more = max(time.Until(next), 0), true
	}
	if len(due) == 0 {
		return wait, more
	}
	if !a.turn.TryOwn() {
		return lettingAgain, true
	}
	defer a.turn.Unlock()
	for _, t := range due {
		a.mu.Lock()
		still := a.tunnels[t.id] == t && t.holders.count == 0
		a.mu.Unlock()
		if !still {
			continue
		}
		if err := a.remove(ctx, t); err != nil {
			a.log.Error("tunnel that nobody holds not removed; it is tried again", "tunnel", t.id, "error", err)
			a.mu.Lock()
			t.holders.left = time.Now()
			a.mu.Unlock()
			more = true
			continue
		}
		a.log.Info("tunnel was held by nobody", "tunnel", t.id, "name", t.spec.Name)
	}
	return wait, more
}

// dueUnheld returns the tunnels whose time is up, and when the next one's is; zero if no other is
// waiting.
func (a *Agent) dueUnheld() (due []*tunnel, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.sortedLocked() {
		if !t.spec.Held || t.holders.count > 0 {
			continue
		}
		up := t.holders.left.Add(holdGrace)
		switch {
		case time.Until(up) <= 0:
			due = append(due, t)
		case next.IsZero() || up.Before(next):
			next = up
		}
	}
	return due, next
}

// part gives back, before the sessions end, what the relay would otherwise serve or keep for
// minutes although nobody comes back for it: what is owed already, and tunnels whose creator was
// gone before it could hold them, such as a short form that is interrupted and ends the daemon
// inside it. A tunnel that was held is kept: its holder has it recreated by the next daemon.
func (a *Agent) part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, parting)
	defer cancel()
	for !a.turn.TryOwn() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(partingPace):
		}
	}
	defer a.turn.Unlock()
	a.mu.Lock()
	cur := a.cur
	var unheld []*tunnel
	for _, t := range a.sortedLocked() {
		if t.spec.Held && !t.holders.had {
			unheld = append(unheld, t)
		}
	}
	a.mu.Unlock()
	for _, t := range unheld {
		if err := a.remove(ctx, t); err != nil {
			a.log.Warn("tunnel that nobody holds not removed", "tunnel", t.id, "error", err)
		}
	}
	if cur != nil && cur.Alive() {
		cur.releaseAll(ctx)
	}
}

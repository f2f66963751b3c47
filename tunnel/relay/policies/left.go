package policies

import (
	"context"
	"maps"
	"slices"
	"time"

	"adit/tunnel/relay/store"
)

const (
	// lookAgain is how often it is looked at what is left, and how long somebody must have
	// a target: whoever claims it anew may bring the policy again.
	lookAgain = time.Second
	askTime   = 5 * time.Second // for who has a target
)

// left is a policy that was deleted and stays in force: its target is served, and nobody
// is known to have it. Then it was not opened, but given back, and its tunnel is about to
// be taken down here or runs without its claim.
type left struct {
	held  int       // Hold was called so many times
	since time.Time // somebody is known to have the target; zero: not now
}

// leave keeps a policy in force until it is known why it was deleted.
func (t *Table) leave(target string) {
	t.mu.Lock()
	if t.left[target] == nil {
		t.left[target] = &left{}
	}
	t.mu.Unlock()
	select {
	case t.leaving <- struct{}{}:
	default:
	}
}

// Hold keeps the policy of a target in force, if it is left, until release is called. left
// is that policy as it was stored; nil: it is not left.
func (t *Table) Hold(target string) (left *store.StoredPolicy, release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, stored := t.left[target], t.stored[target]
	if l == nil {
		return nil, func() {}
	}
	l.held++
	return &stored, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		l.held--
	}
}

// WatchLeft removes policies that were deleted and are still in force, once their targets
// are not served or somebody has them, until ctx ends.
func (t *Table) WatchLeft(ctx context.Context) {
	for {
		select {
		case <-t.leaving:
		case <-ctx.Done():
			return
		}
		for t.settleLeft(ctx) {
			pause := time.NewTimer(lookAgain)
			select {
			case <-t.leaving:
			case <-pause.C:
			case <-ctx.Done():
			}
			pause.Stop()
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// settleLeft removes what is to be removed, and reports whether something is left still.
func (t *Table) settleLeft(ctx context.Context) bool {
	t.mu.RLock()
	targets := slices.Collect(maps.Keys(t.left))
	t.mu.RUnlock()
	for _, target := range targets {
		served := t.cfg.Serves(target)
		if t.settle(target, served, served && t.claimed(ctx, target), time.Now()) {
			t.cfg.Recheck(target)
		}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.left) > 0
}

// settle removes a policy that is left, if it is time, and reports whether it did.
func (t *Table) settle(target string, served, claimed bool, now time.Time) bool {
	t.mu.Lock()
	l := t.left[target]
	switch {
	case l == nil || l.held > 0: // another is in force by now, or is about to be
		t.mu.Unlock()
		return false
	case !served:
	case !claimed:
		l.since = time.Time{}
		t.mu.Unlock()
		return false
	case l.since.IsZero():
		l.since = now
		t.mu.Unlock()
		return false
	case now.Sub(l.since) < lookAgain:
		t.mu.Unlock()
		return false
	}
	p := t.drop(target)
	t.mu.Unlock()
	p.End()
	return true
}

// claimed reports whether somebody is known to have a target.
func (t *Table) claimed(ctx context.Context, target string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	claimed, err := t.cfg.Ask(ctx, target)
	return err == nil && claimed
}

package policies

import (
	"context"
	"maps"
	"slices"
	"time"

	"adit/tunnel/relay/store"
)

const (
	// lookAgain is how often leftover policies are checked, and how long somebody must
	// have had a target: whoever claims it again may bring the policy back.
	lookAgain = time.Second
	askTime   = 5 * time.Second // to ask who has a target
)

// left is a policy that was deleted but stays in force, because its target is still
// served and nobody is known to have it. In that case nobody meant to open the target:
// its claim was given back, and its tunnel is about to be taken down or runs without a
// claim.
type left struct {
	held  int       // number of calls to Hold
	since time.Time // since when somebody has been known to have the target; zero: nobody
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

// Hold keeps a leftover policy of a target in force until release is called. left is that
// policy as it was stored, or nil if there is none.
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

// WatchLeft removes deleted policies that are still in force once their targets are not
// served any more or somebody has them. It returns when ctx ends.
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

// settleLeft removes the leftover policies that are due, and reports whether any remain.
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

// settle removes a leftover policy if it is due, and reports whether it did.
func (t *Table) settle(target string, served, claimed bool, now time.Time) bool {
	t.mu.Lock()
	l := t.left[target]
	switch {
	case l == nil || l.held > 0: // another policy is in force, or is about to be
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

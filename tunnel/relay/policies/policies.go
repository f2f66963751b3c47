// Package policies has the policies in force, by target, and sees to it that what is
// open is held to them as they decide now.
package policies

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
)

const hoursCheck = time.Second

// Config is what a Table is made of.
type Config struct {
	Geo     func() policy.Geo            // the database in force; may return nil
	Known   func(s *policy.SignIn) error // why a policy's provider is of no use
	Recheck func(targets ...string)      // holds what is open on targets to their policies
	Log     *slog.Logger
}

// Table is the policies in force.
type Table struct {
	cfg Config

	mu       sync.RWMutex
	byTarget map[string]*policy.Policy
}

// New returns a table without policies.
func New(c Config) *Table { return &Table{cfg: c, byTarget: make(map[string]*policy.Policy)} }

// Get returns the policy of a target; nil: it has none.
func (t *Table) Get(target string) *policy.Policy {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byTarget[target]
}

// Set puts what is stored of a target in force. What is open is not yet held to it.
// Calls are one after the other.
func (t *Table) Set(target string, stored store.StoredPolicy, exists bool) {
	before := t.Get(target)
	var next *policy.Policy
	if exists {
		d, err := policy.ReadStored(stored.Document)
		if err = cmp.Or(stored.Fault, err); err != nil {
			// Nobody is let in by a policy that cannot be read.
			t.cfg.Log.Error("a stored policy cannot be read; its target is closed", "target", target, "error", err)
			d = policy.Document{Deny: []string{"0.0.0.0/0", "::/0"}}
		}
		if err := t.cfg.Known(d.SignIn); err != nil {
			t.cfg.Log.Warn("a policy has visitors sign in with a provider that is not in relay.toml; it lets nobody in", "target", target, "provider", d.SignIn.Provider)
		}
		next = policy.Renew(before, d, t.cfg.Geo)
	} else if before != nil {
		before.End()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if next == nil {
		delete(t.byTarget, target)
	} else {
		t.byTarget[target] = next
	}
}

// WatchHours ends what is open on targets that close now, until ctx ends.
func (t *Table) WatchHours(ctx context.Context) {
	tick := time.NewTicker(hoursCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.recheck((*policy.Policy).Timed)
	}
}

// Moved holds what is open to the policies by country, as another database has
// visitors elsewhere.
func (t *Table) Moved() { t.recheck((*policy.Policy).Fenced) }

// recheck holds what is open on the targets of some policies to them as they
// decide now.
func (t *Table) recheck(pick func(*policy.Policy) bool) {
	t.mu.RLock()
	var list []string
	for target, p := range t.byTarget {
		if pick(p) {
			list = append(list, target)
		}
	}
	t.mu.RUnlock()
	if len(list) > 0 {
		t.cfg.Recheck(list...)
	}
}

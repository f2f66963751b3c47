// Package policies holds the policies in force, by target, and applies a changed policy
// to visits that are already open. People read and set policies through its Book. What a
// policy decides is up to package policy.
package policies

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
)

const hoursCheck = time.Second

// Config contains what a Table needs.
type Config struct {
	Geo       func() policy.Geo       // the current database; may return nil
	Providers []string                // the identity providers that policies can name
	Recheck   func(targets ...string) // applies the policies of targets to what is open on them
	// Serves reports whether visitors of a target are served here.
	Serves func(target string) bool
	// Claimed reports whether somebody certainly has a target, as far as this node knows.
	Claimed func(target string) bool
	// Ask asks the most up-to-date source whether somebody has a target.
	Ask func(ctx context.Context, target string) (claimed bool, err error)
	Log *slog.Logger
}

// Table holds the policies in force.
type Table struct {
	cfg Config

	mu       sync.RWMutex
	byTarget map[string]*policy.Policy
	stored   map[string]store.StoredPolicy // the stored form of byTarget
	left     map[string]*left              // those of byTarget that are leftover
	leaving  chan struct{}                 // something was added to left; room for one
}

// New returns a table without policies.
func New(c Config) *Table {
	return &Table{
		cfg: c, byTarget: make(map[string]*policy.Policy), stored: make(map[string]store.StoredPolicy),
		left: make(map[string]*left), leaving: make(chan struct{}, 1),
	}
}

// Get returns the policy of a target, or nil if it has none.
func (t *Table) Get(target string) *policy.Policy {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byTarget[target]
}

// UnknownProviderError is returned for a policy whose visitors would sign in with a
// provider that the relay does not have.
type UnknownProviderError struct {
	Name string
	Has  []string
}

// Field returns the name of the field at fault.
func (e *UnknownProviderError) Field() string { return "sign_in.provider" }

func (e *UnknownProviderError) Error() string {
	if len(e.Has) == 0 {
		return "the relay has no identity provider; its operator adds one to relay.toml as [[sign_in]]"
	}
	return fmt.Sprintf("the relay has no identity provider %q; it has %s", e.Name, strings.Join(e.Has, ", "))
}

// Known returns an *UnknownProviderError if the relay does not have a policy's provider.
func (t *Table) Known(s *policy.SignIn) error {
	if s == nil || slices.Contains(t.cfg.Providers, s.Provider) {
		return nil
	}
	return &UnknownProviderError{s.Provider, t.cfg.Providers}
}

// Set puts a stored policy in force at a target, without applying it to what is open yet.
// Calls must not overlap.
func (t *Table) Set(target string, stored store.StoredPolicy, exists bool) {
	before := t.Get(target)
	if !exists {
		switch {
		case before == nil:
		case t.cfg.Serves(target) && !t.cfg.Claimed(target):
			t.leave(target)
		default:
			t.remove(target)
		}
		return
	}
	d, err := policy.ReadStored(stored.Document)
	if err = cmp.Or(stored.Fault, err); err != nil {
		// A policy that cannot be read lets nobody in.
		t.cfg.Log.Error("a stored policy cannot be read; its target is closed", "target", target, "error", err)
		d = policy.Document{Deny: []string{"0.0.0.0/0", "::/0"}}
	}
	if err := t.Known(d.SignIn); err != nil {
		t.cfg.Log.Warn("a policy has visitors sign in with a provider that is not in relay.toml; it lets nobody in", "target", target, "provider", d.SignIn.Provider)
	}
	next := policy.Renew(before, cmp.Or(stored.ClientID, target), d, t.cfg.Geo)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byTarget[target], t.stored[target] = next, stored
	delete(t.left, target)
}

// remove removes the policy of a target, which lets everybody in.
func (t *Table) remove(target string) {
	t.mu.Lock()
	p := t.drop(target)
	t.mu.Unlock()
	p.End()
}

// drop removes a target's policy from the maps and returns it. t.mu must be held.
func (t *Table) drop(target string) *policy.Policy {
	p := t.byTarget[target]
	delete(t.byTarget, target)
	delete(t.stored, target)
	delete(t.left, target)
	return p
}

// WatchHours ends what is open on targets that close, until ctx ends.
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

// Moved rechecks what is open against the policies by country, since another database may
// locate visitors elsewhere.
func (t *Table) Moved() { t.recheck((*policy.Policy).Fenced) }

// recheck applies the selected policies to what is open on their targets.
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

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

// Config is what a Table is made of.
type Config struct {
	Geo       func() policy.Geo       // the database in force; may return nil
	Providers []string                // of identity, that policies can name
	Recheck   func(targets ...string) // holds what is open on targets to their policies
	// Serves reports whether visitors of a target are served here.
	Serves func(target string) bool
	// Claimed reports whether somebody has a target for certain, as far as is known here.
	Claimed func(target string) bool
	// Ask reports whether somebody has it, as whoever knows last says.
	Ask func(ctx context.Context, target string) (claimed bool, err error)
	Log *slog.Logger
}

// Table is the policies in force.
type Table struct {
	cfg Config

	mu       sync.RWMutex
	byTarget map[string]*policy.Policy
	stored   map[string]store.StoredPolicy // of byTarget
	left     map[string]*left              // of byTarget, too
	leaving  chan struct{}                 // left has something new; room for one
}

// New returns a table without policies.
func New(c Config) *Table {
	return &Table{
		cfg: c, byTarget: make(map[string]*policy.Policy), stored: make(map[string]store.StoredPolicy),
		left: make(map[string]*left), leaving: make(chan struct{}, 1),
	}
}

// Get returns the policy of a target; nil: it has none.
func (t *Table) Get(target string) *policy.Policy {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byTarget[target]
}

// UnknownProviderError is of a policy whose visitors would sign in with a provider
// that the relay has not.
type UnknownProviderError struct {
	Name string
	Has  []string
}

// Field is the field at fault.
func (e *UnknownProviderError) Field() string { return "sign_in.provider" }

func (e *UnknownProviderError) Error() string {
	if len(e.Has) == 0 {
		return "the relay has no identity provider; its operator adds one to relay.toml as [[sign_in]]"
	}
	return fmt.Sprintf("the relay has no identity provider %q; it has %s", e.Name, strings.Join(e.Has, ", "))
}

// Known reports why a policy's provider is of no use: an *UnknownProviderError.
func (t *Table) Known(s *policy.SignIn) error {
	if s == nil || slices.Contains(t.cfg.Providers, s.Provider) {
		return nil
	}
	return &UnknownProviderError{s.Provider, t.cfg.Providers}
}

// Set puts what is stored of a target in force. What is open is not yet held to it.
// Calls are one after the other.
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
		// Nobody is let in by a policy that cannot be read.
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

// remove lets everybody in to a target.
func (t *Table) remove(target string) {
	t.mu.Lock()
	p := t.drop(target)
	t.mu.Unlock()
	p.End()
}

// drop takes the policy out that a target has; t.mu is held.
func (t *Table) drop(target string) *policy.Policy {
	p := t.byTarget[target]
	delete(t.byTarget, target)
	delete(t.stored, target)
	delete(t.left, target)
	return p
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

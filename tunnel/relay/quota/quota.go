// Package quota holds clients to their bandwidths and their monthly byte limits, and
// counts those bytes.
package quota

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/scope"
)

// near is the share of a month's bytes from which the limit counts as near.
const near = 0.8

// The states of a client's usage.
const (
	OK        = "ok"
	Near      = "near"
	Over      = "over"
	Throttled = "throttled"
	Stopped   = "stopped"
)

// Clients returns what a client may have: *store.Clients.
type Clients interface {
	ByID(id string) (store.Client, bool)
}

// Usages stores what clients have moved, at all nodes: *store.Usages.
type Usages interface {
	Get(clientID, month string) store.Usage
	Add(ctx context.Context, clientID, month string, t store.Tally) (store.Usage, error)
	Counted(clientID, run string) (store.Counted, bool)
}

// Edge applies the accounts of clients to visitors: *edge.Edge.
type Edge interface {
	Bound(a *shape.Account)
	Stop(a *shape.Account, stop bool)
}

// Config contains what Accounts needs.
type Config struct {
	Clients Clients
	Usages  Usages
	Edge    Edge
	Log     *slog.Logger
}

// Accounts holds the accounts of this node's clients: their bandwidths, and the bytes
// that count towards their months.
type Accounts struct {
	cfg Config

	mu       sync.Mutex
	byClient map[string]*account
}

type account struct {
	shape.Account

	run      string     // distinguishes its counts from those of others
	counting sync.Mutex // held while storing bytes; taken before turn

	turn    sync.Mutex // held while applying; never held while waiting for the store
	in, out int64      // bytes already stored
	state   string
}

// New returns Accounts that are still empty.
func New(c Config) *Accounts { return &Accounts{cfg: c, byClient: make(map[string]*account)} }

// Of returns a client's account.
func (a *Accounts) Of(clientID string) *shape.Account {
	a.mu.Lock()
	v := a.byClient[clientID]
	fresh := v == nil
	if fresh {
		v = &account{run: rand.Text(), state: OK}
		a.byClient[clientID] = v
	}
	a.mu.Unlock()
	if fresh {
		a.Apply(clientID)
	}
	return &v.Account
}

// Settle holds clients to their quotas, and then stores what they have moved. Each write
// to an unavailable store waits long, and one after the other they would delay the next
// check of the quotas. So the rest is left for the next time.
func (a *Accounts) Settle(ctx context.Context) {
	a.mu.Lock()
	ids := make([]string, 0, len(a.byClient))
	for id := range a.byClient {
		ids = append(ids, id)
	}
	a.mu.Unlock()
	for _, id := range ids {
		a.Apply(id)
	}
	for _, id := range ids {
		if err := a.count(ctx, id); err != nil {
			a.cfg.Log.Warn("count a client's traffic", "client_id", id, "error", err)
			if bucket.IsAway(err) || bucket.IsFull(err) || errors.Is(err, bucket.ErrLost) {
				return
			}
		}
	}
}

// count stores what an account has moved since the last time.
func (a *Accounts) count(ctx context.Context, id string) error {
	a.mu.Lock()
	v := a.byClient[id]
	a.mu.Unlock()
	if v == nil {
		return nil
	}
	v.counting.Lock()
	defer v.counting.Unlock()
	v.turn.Lock()
	v.hear(a.cfg.Usages, id)
	before := store.Counted{In: v.in, Out: v.out}
	v.turn.Unlock()
	in, out := v.Bytes()
	if in == before.In && out == before.Out {
		return nil
	}
	if _, err := a.cfg.Usages.Add(ctx, id, store.MonthOf(time.Now()), store.Tally{Run: v.run, In: in, Out: out, Before: before}); err != nil {
		return err
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	v.in, v.out = max(v.in, in), max(v.out, out)
	return nil
}

// hear updates what is known to be stored from the store itself: a write that it did not
// confirm may have been made after all. v.turn must be held.
func (v *account) hear(usages Usages, id string) {
	if c, ok := usages.Counted(id, v.run); ok {
		v.in, v.out = max(v.in, c.In), max(v.out, c.Out)
	}
}

// stored returns what the store has for a month, and makes v.in and v.out match the same
// moment, since a write may be made in between. v.turn must be held.
func (v *account) stored(usages Usages, id, month string) store.Usage {
	for {
		v.hear(usages, id)
		in, out := v.in, v.out
		usage := usages.Get(id, month)
		if v.hear(usages, id); in == v.in && out == v.out {
			return usage
		}
	}
}

// Usage returns what a client moved in a month, including what is not stored yet.
func (a *Accounts) Usage(id, month string) store.Usage {
	a.mu.Lock()
	v := a.byClient[id]
	a.mu.Unlock()
	if v == nil {
		return a.cfg.Usages.Get(id, month)
	}
	v.turn.Lock() // so that what is just being stored counts once
	defer v.turn.Unlock()
	usage := v.stored(a.cfg.Usages, id, month)
	in, out := v.Bytes()
	usage.In, usage.Out = usage.In+in-v.in, usage.Out+out-v.out
	return usage
}

// State returns the state of a month's bytes under a quota.
func State(s scope.Scope, total int64) string {
	switch {
	case s.Monthly == 0 || float64(total) < near*float64(s.Monthly):
		return OK
	case total < s.Monthly:
		return Near
	case s.OverQuota == scope.OverThrottle:
		return Throttled
	case s.OverQuota == scope.OverStop:
		return Stopped
	}
	return Over
}

// Apply holds a client to its bandwidth and quota.
func (a *Accounts) Apply(id string) {
	a.mu.Lock()
	v := a.byClient[id]
	a.mu.Unlock()
	if v == nil {
		return
	}
	client, ok := a.cfg.Clients.ByID(id)
	if !ok {
		return
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	usage := v.stored(a.cfg.Usages, id, store.MonthOf(time.Now()))
	in, out := v.Bytes()
	state := State(client.Scope, usage.In+usage.Out+in-v.in+out-v.out)
	rate := client.Scope.Bandwidth
	if state == Throttled {
		slow := client.Scope.Throttle
		if slow == 0 {
			slow = scope.DefaultThrottle
		}
		if rate == 0 || slow < rate {
			rate = slow
		}
	}
	if rate != v.In.Rate() {
		v.In.SetRate(rate)
		v.Out.SetRate(rate)
		a.cfg.Edge.Bound(&v.Account)
	}
	if state != v.state {
		if state != OK {
			a.cfg.Log.Warn("client's traffic of this month", "client", client.Name, "state", state, "limit", client.Scope.Monthly)
		}
		v.state = state
		a.cfg.Edge.Stop(&v.Account, state == Stopped)
	}
}

// Forget drops the account of a client that no longer exists.
func (a *Accounts) Forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byClient, id)
}

// Has reports whether a client has an account here.
func (a *Accounts) Has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byClient[id] != nil
}

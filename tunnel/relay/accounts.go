package relay

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/store"
)

const (
	usageFlush = 5 * time.Second
	nearQuota  = 0.8
)

// States of a client's usage.
const (
	usageOK        = "ok"
	usageNear      = "near"
	usageOver      = "over"
	usageThrottled = "throttled"
	usageStopped   = "stopped"
)

// accounts are what this node's edge holds of clients: their bandwidths, and the
// bytes that are counted to their months.
type accounts struct {
	mu       sync.Mutex
	byClient map[string]*account
}

type account struct {
	edge.Account

	run     string     // tells what it counts from what others do
	turn    sync.Mutex // one goroutine at a time counts or applies
	in, out int64      // bytes that are stored already
	state   string
}

// get returns a client's account.
func (a *accounts) get(r *Relay, clientID string) *edge.Account {
	a.mu.Lock()
	v := a.byClient[clientID]
	fresh := v == nil
	if fresh {
		if a.byClient == nil {
			a.byClient = make(map[string]*account)
		}
		v = &account{run: rand.Text(), state: usageOK}
		a.byClient[clientID] = v
	}
	a.mu.Unlock()
	if fresh {
		a.apply(r, clientID)
	}
	return &v.Account
}

// run counts what was moved and holds clients to their quotas, until ctx ends.
func (a *accounts) run(ctx context.Context, r *Relay) {
	every := r.opts.usageFlush
	if every == 0 {
		every = usageFlush
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.settle(ctx, r)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.Background(), storeWait)
			a.settle(last, r)
			r.seen.flush(last, r)
			cancel()
			return
		}
		r.seen.flush(ctx, r)
	}
}

// settle holds clients to their quotas, and then stores what they moved. A write
// waits long for a store that is away, and one after the other would keep those
// that come later from being held: the rest is left for the next time.
func (a *accounts) settle(ctx context.Context, r *Relay) {
	a.mu.Lock()
	ids := make([]string, 0, len(a.byClient))
	for id := range a.byClient {
		ids = append(ids, id)
	}
	a.mu.Unlock()
	for _, id := range ids {
		a.apply(r, id)
	}
	for _, id := range ids {
		if err := a.count(ctx, r, id); err != nil {
			r.log.Warn("count a client's traffic", "client_id", id, "error", err)
			if store.IsAway(err) {
				return
			}
		}
	}
}

// count stores what an account has moved since the last time.
func (a *accounts) count(ctx context.Context, r *Relay, id string) error {
	a.mu.Lock()
	v := a.byClient[id]
	a.mu.Unlock()
	if v == nil {
		return nil
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	v.hear(r, id)
	in, out := v.Bytes()
	if in == v.in && out == v.out {
		return nil
	}
	tally := store.Tally{Run: v.run, In: in, Out: out, Before: store.Counted{In: v.in, Out: v.out}}
	if _, err := r.store.Usages.Add(ctx, id, store.MonthOf(time.Now()), tally); err != nil {
		return err
	}
	v.in, v.out = in, out
	return nil
}

// hear takes what is stored already from what the store says: a write that it did
// not answer may have been made after all. v.turn is held.
func (v *account) hear(r *Relay, id string) {
	if c, ok := r.store.Usages.Counted(id, v.run); ok {
		v.in, v.out = max(v.in, c.In), max(v.out, c.Out)
	}
}

// usage is what a client moved in a month, with what is not yet stored of it.
func (a *accounts) usage(r *Relay, id, month string) store.Usage {
	a.mu.Lock()
	v := a.byClient[id]
	a.mu.Unlock()
	if v == nil {
		return r.store.Usages.Get(id, month)
	}
	v.turn.Lock() // what is being stored is counted once
	defer v.turn.Unlock()
	usage := r.store.Usages.Get(id, month)
	v.hear(r, id)
	in, out := v.Bytes()
	usage.In, usage.Out = usage.In+in-v.in, usage.Out+out-v.out
	return usage
}

// usageState is what a quota makes of a month's bytes.
func usageState(s store.Scope, total int64) string {
	switch {
	case s.Monthly == 0 || float64(total) < nearQuota*float64(s.Monthly):
		return usageOK
	case total < s.Monthly:
		return usageNear
	case s.OverQuota == store.OverThrottle:
		return usageThrottled
	case s.OverQuota == store.OverStop:
		return usageStopped
	}
	return usageOver
}

// apply holds a client to its bandwidth and quota.
func (a *accounts) apply(r *Relay, id string) {
	a.mu.Lock()
	v := a.byClient[id]
	a.mu.Unlock()
	if v == nil {
		return
	}
	client, ok := r.store.Clients.ByID(id)
	if !ok {
		return
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	usage := r.store.Usages.Get(id, store.MonthOf(time.Now()))
	v.hear(r, id)
	in, out := v.Bytes()
	state := usageState(client.Scope, usage.In+usage.Out+in-v.in+out-v.out)
	rate := client.Scope.Bandwidth
	if state == usageThrottled {
		slow := client.Scope.Throttle
		if slow == 0 {
			slow = store.DefaultThrottle
		}
		if rate == 0 || slow < rate {
			rate = slow
		}
	}
	if rate != v.In.Rate() {
		v.In.SetRate(rate)
		v.Out.SetRate(rate)
		r.edge.Bound(&v.Account)
	}
	if state != v.state {
		if state != usageOK {
			r.log.Warn("client's traffic of this month", "client", client.Name, "state", state, "limit", client.Scope.Monthly)
		}
		v.state = state
		r.edge.Stop(&v.Account, state == usageStopped)
	}
}

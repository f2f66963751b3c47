package relay

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

const (
	accessKept  = 10_000          // in memory, to be searched
	accessQueue = 4096            // not yet stored
	accessFlush = time.Second     // at the latest
	accessWait  = 5 * time.Second // for the store
)

// accessLog keeps the latest access events in memory and stores all in batches.
type accessLog struct {
	events *store.Events
	log    *slog.Logger
	lost   *atomic.Uint64
	full   chan struct{}

	mu      sync.Mutex
	ring    []wire.Access // oldest at next once it is full
	next    int
	queue   []wire.Access
	dropped int64
}

func openAccessLog(ctx context.Context, events *store.Events, lost *atomic.Uint64, log *slog.Logger) (*accessLog, error) {
	a := &accessLog{events: events, log: log, lost: lost, full: make(chan struct{}, 1)}
	latest, err := events.Latest(ctx, accessKept)
	if err != nil {
		return nil, err
	}
	a.ring = latest[max(0, len(latest)-accessKept):]
	return a, nil
}

func (a *accessLog) add(e wire.Access) {
	a.mu.Lock()
	if len(a.ring) < accessKept {
		a.ring = append(a.ring, e)
	} else {
		a.ring[a.next] = e
		a.next = (a.next + 1) % accessKept
	}
	if len(a.queue) < accessQueue {
		a.queue = append(a.queue, e)
	} else {
		a.dropped++
	}
	full := len(a.queue) >= store.MaxBatch
	a.mu.Unlock()
	if full {
		select {
		case a.full <- struct{}{}:
		default:
		}
	}
}

// run stores events until ctx ends, and what is left then.
func (a *accessLog) run(ctx context.Context) error {
	tick := time.NewTicker(accessFlush)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.flush()
		case <-a.full:
			a.flush()
		case <-ctx.Done():
			a.flush()
			return nil
		}
	}
}

func (a *accessLog) flush() {
	for {
		a.mu.Lock()
		n := min(len(a.queue), store.MaxBatch)
		batch := a.queue[:n:n]
		a.queue = a.queue[n:]
		dropped := a.dropped
		a.dropped = 0
		a.mu.Unlock()
		if dropped > 0 {
			a.lost.Add(uint64(dropped))
			a.log.Warn("access events were not stored: the store is too slow", "count", dropped)
		}
		if n == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), accessWait)
		err := a.events.Append(ctx, batch)
		cancel()
		if err != nil {
			a.lost.Add(uint64(n))
			a.log.Warn("access events were not stored", "count", n, "error", err)
			return
		}
	}
}

// search returns the newest events that match, newest first.
func (a *accessLog) search(match func(*wire.Access) bool, limit int) []wire.Access {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := []wire.Access{}
	for i := range a.ring {
		e := &a.ring[(a.next+len(a.ring)-1-i+len(a.ring))%len(a.ring)]
		if match(e) {
			if found = append(found, *e); len(found) == limit {
				break
			}
		}
	}
	return found
}

// record takes an access event of the edge: into the log, and to the agent
// whose tunnel it was.
func (r *Relay) record(ep *edge.Endpoint, b *edge.Backend, e wire.Access) {
	if b == nil {
		if list := ep.Backends(); len(list) > 0 {
			b = list[0]
		}
	}
	if b != nil {
		e.Key = b.Key
	}
	r.access.add(e)
	r.counts.visit(ep.Type, e)
	if b == nil {
		return
	}
	r.mu.Lock()
	s := r.byInstance[instanceKey{b.Agent.ClientID, b.Agent.Instance}]
	r.mu.Unlock()
	if s == nil {
		if far, ok := b.Agent.Session.(*nodes.Session); ok {
			far.Access(e)
		}
		return
	}
	select {
	case s.access <- wire.Event{Type: wire.EventAccess, Key: e.Key, Access: &e}:
	default:
	}
}

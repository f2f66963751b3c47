package relay

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

const (
	accessQueue = 4096            // not yet stored
	accessFlush = time.Second     // at the latest
	accessWait  = 5 * time.Second // for the store
	// What a visitor wrote is kept up to so many bytes: it may be as long as a
	// request's head.
	maxAccessPath   = 2048
	maxAccessMethod = 32
	// maxAccessBatch is how many bytes are stored together: a message of NATS has
	// at most 1 MiB, and headers.
	maxAccessBatch = 15 << 16
)

// accessStore is where an accessLog stores its batches: *store.Events.
type accessStore interface {
	Append(ctx context.Context, batch []wire.Access) error
}

// accessLog stores access events in batches.
type accessLog struct {
	events accessStore
	log    *slog.Logger
	lost   *atomic.Uint64
	begun  chan struct{} // the queue is no longer empty; room for one
	full   chan struct{} // it has enough for a batch; room for one

	flushing sync.Mutex // taken before mu

	mu      sync.Mutex
	queue   []wire.Access
	dropped int64
}

func newAccessLog(events accessStore, lost *atomic.Uint64, log *slog.Logger) *accessLog {
	return &accessLog{events: events, log: log, lost: lost, begun: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

func (a *accessLog) add(e wire.Access) {
	a.mu.Lock()
	if len(a.queue) < accessQueue {
		a.queue = append(a.queue, e)
	} else {
		a.dropped++
	}
	waiting := len(a.queue)
	a.mu.Unlock()
	switch {
	case waiting == 1:
		poke(a.begun)
	case waiting >= store.MaxBatch:
		poke(a.full)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// waiting is how many events are not yet stored.
func (a *accessLog) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue)
}

// run stores events until ctx ends, and what is left then. While there are none
// it sleeps.
func (a *accessLog) run(ctx context.Context) error {
	due := time.NewTimer(accessFlush)
	defer due.Stop()
	for {
		select {
		case <-a.begun:
			due.Reset(accessFlush)
			continue
		case <-due.C:
			a.flush()
		case <-a.full:
			a.flush()
		case <-ctx.Done():
			a.flush()
			return nil
		}
	}
}

// flush stores what was added before it was called, and nothing that comes
// meanwhile: on a busy relay there is always more, and it would be stored in small
// batches, one after the other. The store may be away: then a batch is lost, and
// the rest waits.
func (a *accessLog) flush() {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	defer func() {
		if a.waiting() > 0 {
			poke(a.begun) // or they would wait for a batch to be full
		}
	}()
	for left := a.waiting(); ; {
		a.mu.Lock()
		n := batchOf(a.queue[:left])
		batch := a.queue[:n:n]
		a.queue = a.queue[n:]
		left -= n
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

// batchOf is how many of the waiting events are stored together.
func batchOf(queue []wire.Access) int {
	size := 0
	for i := range queue {
		size += queue[i].MaxJSON()
		if i == store.MaxBatch || i > 0 && size > maxAccessBatch {
			return i
		}
	}
	return len(queue)
}

// clip is text of at most so many bytes, and a sign if there was more.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…" // a new string, that does not keep the long one
}

// record takes an access event of the edge: into the log, to the sinks, and to
// the agent whose tunnel it was.
func (r *Relay) record(ep *edge.Endpoint, b *edge.Backend, e wire.Access) {
	r.counts.visit(ep.Type, e)
	if !r.cfg.AccessLog {
		return
	}
	if b == nil {
		if list := ep.Backends(); len(list) > 0 {
			b = list[0]
		}
	}
	if b != nil {
		e.Key, e.ClientID = b.Key, b.Agent.ClientID
	}
	e.Node = r.node
	e.Method, e.Path = clip(e.Method, maxAccessMethod), clip(e.Path, maxAccessPath)
	if a, err := netip.ParseAddr(e.Visitor); err == nil {
		e.Country = r.policies.place(a)
	}
	r.access.add(e)
	r.sinks.access(e)
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
	s.visited(e)
}

// Package accesslog records what visitors did. It collects access events, stores them in
// batches and searches them.
package accesslog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/internal/visible"
	"adit/tunnel/relay/store/events"
	"adit/tunnel/wire"
)

const (
	mostWaiting = 4096            // not yet stored
	flushEvery  = time.Second     // at the latest
	storeWait   = 5 * time.Second // for the store
	// tellEvery is how often lost events are logged.
	tellEvery = 10 * time.Minute
	// Limits in bytes on what is kept of a visitor's text, which may be as long as a
	// request's head.
	maxPath   = 2048
	maxMethod = 32
	// maxBatch is how many bytes are stored together. A NATS message, including headers,
	// is at most 1 MiB.
	maxBatch = 15 << 16
)

var errSlow = errors.New("the store is too slow")

// Store is where a Log stores and finds its batches: *events.Log.
type Store interface {
	Append(ctx context.Context, batch []wire.Access) error
	Walk(ctx context.Context, s events.Scan, f func(*wire.Access) bool) (next events.Cursor, done bool, err error)
	Follow(ctx context.Context, f func(batch []wire.Access, missed int) error) error
}

// Log stores access events in batches. While Run runs, events are stored within about a
// second.
type Log struct {
	events Store
	log    *slog.Logger
	lost   atomic.Uint64
	begun  chan struct{} // the queue is no longer empty; room for one
	full   chan struct{} // there are enough events for a batch; room for one

	flushing sync.Mutex // taken before mu; also guards outage
	outage   outage

	mu      sync.Mutex
	queue   []wire.Access
	dropped int64
}

// New returns a Log that uses a store.
func New(events Store, log *slog.Logger) *Log {
	return &Log{events: events, log: log, begun: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

// Trim shortens what a visitor wrote to what is kept of it.
func Trim(e *wire.Access) {
	e.Method, e.Path = visible.Clip(e.Method, maxMethod), visible.Clip(e.Path, maxPath)
}

// Add adds an event to the log. It never waits: events that exceed what the store can
// take are lost, and counted.
func (a *Log) Add(e wire.Access) {
	a.mu.Lock()
	if len(a.queue) < mostWaiting {
		a.queue = append(a.queue, e)
	} else {
		a.dropped++
	}
	waiting := len(a.queue)
	a.mu.Unlock()
	switch {
	case waiting == 1:
		poke(a.begun)
	case waiting >= events.MaxBatch:
		poke(a.full)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Waiting returns how many events are not stored yet.
func (a *Log) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue)
}

// Lost returns how many events were never stored.
func (a *Log) Lost() uint64 { return a.lost.Load() }

// Run stores events until ctx ends, and then those that are left. It sleeps while there
// are none.
func (a *Log) Run(ctx context.Context) error {
	due := time.NewTimer(flushEvery)
	defer due.Stop()
	for {
		select {
		case <-a.begun:
			due.Reset(flushEvery)
			continue
		case <-due.C:
			a.Flush()
		case <-a.full:
			a.Flush()
		case <-ctx.Done():
			a.Flush()
			return nil
		}
	}
}

// Flush stores what was added before it was called, and nothing that is added later: on a
// busy relay there is always more, and that would be stored in many small batches. If the
// store is unavailable, one batch is lost and the rest waits.
func (a *Log) Flush() {
	a.flushing.Lock()
	defer a.flushing.Unlock()
	defer func() {
		if a.Waiting() > 0 {
			poke(a.begun) // otherwise they would wait until a batch is full
		}
	}()
	left := a.Waiting()
	for whole := left > 0; ; {
		a.mu.Lock()
		n := batchOf(a.queue[:left])
		batch := a.queue[:n:n]
		a.queue = a.queue[n:]
		left -= n
		dropped := a.dropped
		a.dropped = 0
		a.mu.Unlock()
		if dropped > 0 {
			a.lose(int(dropped), errSlow)
			whole = false
		}
		if n == 0 {
			if whole {
				a.tellEnd()
			}
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		err := a.events.Append(ctx, batch)
		cancel()
		if err != nil {
			a.lose(n, err)
			return
		}
	}
}

// outage is a period in which events are lost.
type outage struct {
	lost, untold int
	again        time.Duration // when more may be logged, by monotime.Now; 0: nothing is being lost
}

// lose counts events that are not stored. It logs the first loss and then only one line
// every so often, since NATS may be out of space for days.
func (a *Log) lose(n int, why error) {
	a.lost.Add(uint64(n))
	o := &a.outage
	o.lost, o.untold = o.lost+n, o.untold+n
	if now := monotime.Now(); o.again == 0 || now >= o.again {
		a.log.Warn("access events were not stored", "count", o.untold, "error", why)
		o.untold, o.again = 0, now+tellEvery
	}
}

// tellEnd logs that events are no longer being lost.
func (a *Log) tellEnd() {
	if a.outage.again != 0 {
		a.log.Info("access events are stored again", "lost", a.outage.lost)
		a.outage = outage{}
	}
}

// batchOf returns how many of the waiting events to store together.
func batchOf(queue []wire.Access) int {
	size := 0
	for i := range queue {
		size += queue[i].MaxJSON()
		if i == events.MaxBatch || i > 0 && size > maxBatch {
			return i
		}
	}
	return len(queue)
}

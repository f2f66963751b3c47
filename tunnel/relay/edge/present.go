package edge

import (
	"context"
	"net/http"
	"sync"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/policy"
)

// present is the visitors that an endpoint has now.
type present struct {
	mu  sync.Mutex
	all map[*presence]struct{}
}

// presence is one of them.
type presence struct {
	of     *present
	cancel context.CancelFunc
	w      *countedWriter // of a request; nil for a connection, which looks after itself

	// Guarded by of.mu.
	guest *policy.Guest // nil: it is not let in yet
	moved int64         // bytes, when it was last looked at; -1: never
	since time.Duration
}

// end ends the visit. What is being written to a visitor who does not read is
// given up after a while.
func (p *presence) end() {
	p.cancel()
	if p.w != nil {
		p.w.giveUp()
	}
}

// enter notes a visitor, with the answer of a request. The context ends when the
// visitor may no longer be.
func (ep *Endpoint) enter(ctx context.Context, w *countedWriter) (context.Context, *presence) {
	ctx, cancel := context.WithCancel(ctx)
	v := &presence{of: &ep.visits, cancel: cancel, w: w, moved: -1}
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	if v.of.all == nil {
		v.of.all = make(map[*presence]struct{})
	}
	v.of.all[v] = struct{}{}
	return ctx, v
}

// letIn notes who was let in. A policy that was changed before that, and not
// heeded, is for the caller to ask.
func (p *presence) letIn(g policy.Guest) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.guest = &g
}

func (p *presence) leave() {
	p.of.mu.Lock()
	delete(p.of.all, p)
	p.of.mu.Unlock()
	p.cancel()
	if p.w != nil {
		p.w.over()
	}
}

// endIdle ends the requests of which no byte has moved for limit.
func (p *present) endIdle(now, limit time.Duration) {
	p.endEach(func(v *presence) bool {
		if v.w == nil {
			return false
		}
		if moved := v.w.moved(); moved != v.moved {
			v.moved, v.since = moved, now
		}
		return now-v.since >= limit
	})
}

// endEach ends those that are picked.
func (p *present) endEach(pick func(*presence) bool) {
	p.mu.Lock()
	var ending []*presence
	for v := range p.all {
		if pick(v) {
			ending = append(ending, v)
		}
	}
	p.mu.Unlock()
	for _, v := range ending {
		v.end()
	}
}

// endIdle ends requests that stand still, until ctx ends: a visitor who sends
// half of a body, or reads half of an answer, holds a stream and a connection of
// the origin.
func (e *Edge) endIdle(ctx context.Context) {
	limit := max(e.limits.StreamIdle, e.limits.OriginTime)
	tick := time.NewTicker(min(max(limit/4, 10*time.Millisecond), time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, ep := range e.Endpoints() {
			ep.visits.endIdle(monotime.Now(), limit)
		}
	}
}

// moved is how many bytes have moved in either direction.
func (w *countedWriter) moved() int64 { return w.in.Load() + w.out.Load() }

// giveUp ends what is being written after a while, in which a visitor who reads
// can still be told why.
func (w *countedWriter) giveUp() {
	w.ending.Lock()
	defer w.ending.Unlock()
	if !w.ended && !w.given { // a later one would put it off
		w.given = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(lingerTime)) // else it ends with its connection
	}
}

// over ends the power of giveUp: the connection may be another request's.
func (w *countedWriter) over() {
	w.ending.Lock()
	defer w.ending.Unlock()
	w.ended = true
	if w.given {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

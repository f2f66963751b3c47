package edge

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
)

// present is the visitors that an endpoint has now.
type present struct {
	mu  sync.Mutex
	all map[*presence]struct{}
}

// presence is one of them.
type presence struct {
	of     *Endpoint
	cancel context.CancelFunc
	w      *countedWriter // of a request; nil for a connection, which looks after itself

	// Guarded by of.visits.mu.
	guest   *policy.Guest  // nil: it is not let in yet
	private *visitor.Guest // of a private tunnel: who it is
	moved   int64          // bytes, when it was last looked at; -1: never
	since   time.Duration
}

// End ends the visit. What is being written to a visitor who does not read is
// given up after a while.
func (p *presence) End() {
	p.cancel()
	if p.w != nil {
		p.w.giveUp()
	}
}

// enter notes a visitor, with the answer of a request. The context ends when the
// visitor may no longer be.
func (ep *Endpoint) enter(ctx context.Context, w *countedWriter) (context.Context, *presence) {
	ctx, cancel := context.WithCancel(ctx)
	v := &presence{of: ep, cancel: cancel, w: w, moved: -1}
	if w != nil {
		w.presence = v
	}
	ep.visits.add(v)
	if ep.closed.Load() { // else review finds it when it is closed
		ep.edge.review(ep)
	}
	return ctx, v
}

// letIn notes who was let in. A policy that was changed before that, and not
// heeded, is for the caller to ask.
func (p *presence) letIn(g policy.Guest) {
	g.Reading = new(policy.Reading) // it is asked for again as long as the visit lasts
	p.of.visits.mu.Lock()
	defer p.of.visits.mu.Unlock()
	p.guest = &g
}

func (p *presence) leave() {
	if p.of.visits.remove(p) && p.of.closed.Load() {
		p.of.edge.review(p.of)
	}
	p.cancel()
	if p.w != nil {
		p.w.over()
	}
}

func (p *present) add(v *presence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[*presence]struct{})
	}
	p.all[v] = struct{}{}
}

// remove forgets a visitor and reports whether none is left.
func (p *present) remove(v *presence) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, v)
	return len(p.all) == 0
}

// any reports whether there are visitors.
func (p *present) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) > 0
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

// presented returns what visitors have presented, each connection's once. To verify it
// takes a while, in which nobody is to be kept from coming.
func (p *present) presented() []*policy.Presented {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[*policy.Presented]struct{})
	for v := range p.all {
		if v.guest != nil && v.guest.Certificate != nil {
			all[v.guest.Certificate] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(all))
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
		v.End()
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
		e.endStill(monotime.Now(), limit)
	}
}

// endStill ends the requests of which no byte has moved for limit.
func (e *Edge) endStill(now, limit time.Duration) {
	for _, ep := range e.table.withLeaving() {
		ep.visits.endIdle(now, limit)
	}
}

// relieveEvery is how often it is looked at what visits hold of memory.
const relieveEvery = time.Second

// relieveMemory gives up visits that hold too much of it until ctx ends.
func (e *Edge) relieveMemory(ctx context.Context) {
	tick := time.NewTicker(relieveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.backlog.Relieve(monotime.Now())
			e.admission.TellOfSpared()
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
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(visitor.LingerTime)) // else it ends with its connection
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

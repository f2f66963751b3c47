package edge

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"adit/internal/monotime"
)

// present is the visitors that an endpoint has now.
type present struct {
	mu   sync.Mutex
	next uint64
	all  map[uint64]presence
}

type presence struct {
	addr   netip.Addr
	cancel context.CancelFunc
	w      *countedWriter // of a request; nil for a connection, which looks after itself

	moved int64 // bytes, when it was last looked at; -1: never
	since time.Duration
}

// end ends the visit. What is being written to a visitor who does not read is
// given up after a while.
func (p presence) end() {
	p.cancel()
	if p.w != nil {
		p.w.giveUp()
	}
}

// enter notes a visitor, with the answer of a request. The context ends when the
// visitor may no longer be.
func (ep *Endpoint) enter(ctx context.Context, a netip.Addr, w *countedWriter) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	remove := ep.visits.add(presence{addr: a, cancel: cancel, w: w, moved: -1})
	return ctx, func() {
		remove()
		cancel()
		if w != nil {
			w.over()
		}
	}
}

func (p *present) add(v presence) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[uint64]presence)
	}
	p.next++
	id := p.next
	p.all[id] = v
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.all, id)
	}
}

// end ends those whose address is picked.
func (p *present) end(pick func(netip.Addr) bool) {
	p.endEach(func(v *presence) bool { return pick(v.addr) })
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

// endEach ends those that are picked; pick may change what it is shown.
func (p *present) endEach(pick func(*presence) bool) {
	p.mu.Lock()
	var ending []presence
	for id, v := range p.all {
		if pick(&v) {
			ending = append(ending, v)
		}
		p.all[id] = v
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

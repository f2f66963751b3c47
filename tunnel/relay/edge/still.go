package edge

import (
	"context"
	"net/http"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/edge/visitor"
)

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
	for _, ep := range e.table.All() {
		ep.Visits.EndIdle(now, limit)
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

// Moved is how many bytes have moved in either direction.
func (w *countedWriter) Moved() int64 { return w.in.Load() + w.out.Load() }

// GiveUp ends what is being written after a while, in which a visitor who reads
// can still be told why.
func (w *countedWriter) GiveUp() {
	w.ending.Lock()
	defer w.ending.Unlock()
	if !w.ended && !w.given { // a later one would put it off
		w.given = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(visitor.LingerTime)) // else it ends with its connection
	}
}

// Over ends the power of GiveUp: the connection may be another request's.
func (w *countedWriter) Over() {
	w.ending.Lock()
	defer w.ending.Unlock()
	w.ended = true
	if w.given {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

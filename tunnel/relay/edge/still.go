package edge

import (
	"context"
	"time"

	"adit/internal/monotime"
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

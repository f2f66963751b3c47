package edge

import (
	"context"
	"time"

	"adit/internal/monotime"
)

// endIdle ends stalled requests, until ctx ends. A visitor who sends half a body, or reads
// half an answer, occupies a stream and a connection of the origin.
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

// endStill ends the requests on which no byte has moved for limit.
func (e *Edge) endStill(now, limit time.Duration) {
	for _, ep := range e.table.All() {
		ep.Visits.EndIdle(now, limit)
	}
}

// relieveEvery is how often the memory that visits hold is checked.
const relieveEvery = time.Second

// relieveMemory gives up visits that hold too much memory, until ctx ends.
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

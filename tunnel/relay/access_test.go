package relay

import (
	"context"

	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// search returns the newest events that match, newest first.
func (a *accessLog) search(match func(*wire.Access) bool, limit int) []wire.Access {
	a.flush()
	found := []wire.Access{}
	_, _, err := a.events.Walk(context.Background(), store.Scan{}, func(e *wire.Access) bool {
		if match(e) {
			found = append(found, *e)
		}
		return len(found) < limit
	})
	if err != nil {
		panic(err)
	}
	return found
}

package events

import (
	"context"
	"slices"

	"adit/tunnel/wire"
)

// Latest returns the newest events, oldest first.
func (l *Log) Latest(ctx context.Context, count int) ([]wire.Access, error) {
	var list []wire.Access
	_, _, err := l.Walk(ctx, Scan{}, func(a *wire.Access) bool {
		a.ID = ""
		list = append(list, *a)
		return len(list) < count
	})
	slices.Reverse(list)
	return list, err
}

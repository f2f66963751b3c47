package store

import "time"

// nextTime is when a value changes that changed before: clocks have steps, and the
// time tells one from the next.
func nextTime(before time.Time) time.Time {
	now := time.Now().UTC()
	if now.Equal(before) {
		now = now.Add(1)
	}
	return now
}

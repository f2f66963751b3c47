package store

import "time"

// nextTime returns the time for a change of a value that was last changed at before. Clocks
// have a limited resolution, and the time must distinguish one change from the next.
func nextTime(before time.Time) time.Time {
	now := time.Now().UTC()
	if now.Equal(before) {
		now = now.Add(1)
	}
	return now
}

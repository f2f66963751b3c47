// Package monotime measures elapsed time on a clock that nobody sets, for durations that are stored
// as a number. A time.Time has the same property only as long as it keeps its monotonic reading;
// time.Unix, UnixNano, UTC and Round leave only the wall clock, which NTP and people move by
// seconds and by years.
package monotime

import "time"

var start = time.Now()

// Now returns the time since the process started, for comparison with other such times.
func Now() time.Duration { return time.Since(start) }

// At returns the moment of an earlier Now, with a monotonic reading.
func At(then time.Duration) time.Time {
	now := time.Now()
	return now.Add(then - now.Sub(start))
}

// set is by how much the wall clock must be off for it to have been set; less is
// how clocks are.
const set = 2 * time.Second

// Wall returns t in UTC according to the current setting of the wall clock, so that it is as long
// ago as it really was. A t without a monotonic reading, as UTC and Round produce, is taken
// literally.
func Wall(t time.Time) time.Time {
	now := time.Now()
	if by := now.Round(0).Sub(t.Round(0)) - now.Sub(t); by.Abs() >= set {
		t = t.Round(0).Add(by.Round(time.Second))
	}
	return t.UTC()
}

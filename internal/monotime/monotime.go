// Package monotime measures elapsed time on a clock that nobody sets, for durations that are stored
// as a number. A time.Time has the same property only as long as it keeps its monotonic reading;
// time.Unix, UnixNano, UTC and Round leave only the wall clock, which NTP and people move by
// seconds and by years.
package monotime

import "time"

var start = time.Now()

// Now is the time since the process began. It is for comparing with another.
func Now() time.Duration { return time.Since(start) }

// At is the moment of a former Now, with a monotonic reading of its own.
func At(then time.Duration) time.Time {
	now := time.Now()
	return now.Add(then - now.Sub(start))
}

// set is by how much the wall clock must be off for it to have been set; less is
// how clocks are.
const set = 2 * time.Second

// Wall is when t was in UTC, by the wall clock as it is set now: as long ago as it
// really was. A t without a monotonic reading, as UTC and Round leave none, is
// taken for what it says.
func Wall(t time.Time) time.Time {
	now := time.Now()
	if by := now.Round(0).Sub(t.Round(0)) - now.Sub(t); by.Abs() >= set {
		t = t.Round(0).Add(by.Round(time.Second))
	}
	return t.UTC()
}

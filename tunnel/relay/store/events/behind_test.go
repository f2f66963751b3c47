package events

import "testing"

// TestSearchLooksBehindWhatWasStoredWhileTheClockStoodInThePast has batches whose times are
// not in order, because a clock was wrong and then corrected.
func TestSearchLooksBehindWhatWasStoredWhileTheClockStoodInThePast(t *testing.T) {
	for _, c := range []struct {
		name         string
		at, first    uint64
		from, to     uint64 // the batches that are not old
		want, atMost uint64
	}{
		{"all are old", 1_000_000, 1, 0, 0, 0, 0},
		{"all are old, and the first are gone", 5000, 4990, 0, 0, 0, 0},
		{"the one before", 100, 1, 99, 99, 99, 99},
		{"a hundred behind ten", 1000, 1, 890, 990, 890, 990},
		{"all behind a long time", 1000, 1, 1, 500, 1, 500},
		{"the very first", 1000, 990, 990, 990, 990, 990},
		{"nothing is before", 1, 1, 1, 1, 0, 0},
		{"nothing is before that is kept", 7, 7, 1, 7, 0, 0},
		{"an empty stream", 0, 0, 0, 0, 0, 0},
	} {
		asked := 0
		got := behind(c.at, c.first, func(seq uint64) bool {
			asked++
			if seq < c.first || seq >= c.at {
				t.Errorf("%s: asked for %d", c.name, seq)
			}
			return seq >= c.from && seq <= c.to && c.from > 0
		})
		if got < c.want || got > c.atMost {
			t.Errorf("%s: got %d, want %d to %d", c.name, got, c.want, c.atMost)
		}
		if asked > 25 {
			t.Errorf("%s: %d batches were read", c.name, asked)
		}
	}
}

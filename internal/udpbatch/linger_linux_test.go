package udpbatch

import (
	"testing"
	"time"
)

func TestReadersLingerWherePacketsAreDense(t *testing.T) {
	const ms = time.Millisecond
	type passed struct {
		n  int
		at time.Duration
	}
	tests := []struct {
		name   string
		passed []passed
		at     time.Duration // when a reader would sleep
		found  int           // with which look there is something; 0: never
		looks  int
	}{
		{"nothing passed", nil, 5 * ms, 1, 0},
		{"few", []passed{{39, 5 * ms}}, 5 * ms, 1, 0},
		{"few in each of two spans", []passed{{39, 5 * ms}, {39, 7 * ms}}, 7 * ms, 1, 0},
		{"many, found at once", []passed{{1, 5 * ms}, {39, 5*ms + 900*time.Microsecond}}, 6 * ms, 1, 1},
		{"many, found later", []passed{{40, 5 * ms}}, 5 * ms, 3, 3},
		{"many, and nothing more", []passed{{40, 5 * ms}}, 5 * ms, 0, 4}, // a look takes 5 µs
		{"many, some time ago", []passed{{40, 5 * ms}}, 8 * ms, 1, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var d density
			for _, p := range test.passed {
				d.add(p.n, p.at)
			}
			looks, now := 0, test.at
			got := d.linger(func(fd uintptr) bool {
				if looks++; fd != 7 {
					t.Errorf("looked at socket %d, want 7", fd)
				}
				now += 5 * time.Microsecond
				return looks == test.found
			}, 7, func() time.Duration { return now })
			if looks != test.looks || got != (looks > 0 && looks == test.found) {
				t.Errorf("got %v after %d looks, want %d", got, looks, test.looks)
			}
		})
	}
}

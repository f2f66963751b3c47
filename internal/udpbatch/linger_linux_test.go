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

// TestNobodyLingersWhereAnotherProgramTakesTheProcessor has a look take as long as
// another program's turn.
func TestNobodyLingersWhereAnotherProgramTakesTheProcessor(t *testing.T) {
	const begin = 5 * time.Millisecond
	var d density
	d.add(densePackets, begin)
	looks, now := 0, begin
	look := func(took time.Duration) {
		d.linger(func(uintptr) bool {
			looks++
			now += took
			return true
		}, 7, func() time.Duration { return now })
	}
	look(crowdedAfter - 1)
	if look(crowdedAfter); looks != 2 {
		t.Fatalf("looked %d times, want 2: a shorter look is not another program's turn", looks)
	}
	for _, after := range []time.Duration{0, crowdedFor / 2} {
		now += after
		d.add(densePackets, now)
		if look(0); looks != 2 {
			t.Errorf("a reader lingers %v after another program had the processor", after)
		}
	}
	now += crowdedFor
	d.add(densePackets, now)
	if look(0); looks != 3 {
		t.Errorf("no reader lingers %v after another program had the processor", crowdedFor)
	}
}

package relay

import (
	"math"
	"testing"
)

func TestBoundsAreThoseOfTheMachine(t *testing.T) {
	for _, c := range []struct {
		memory   int64
		files    int
		visitors int
		waiting  int64
	}{
		{512 << 20, 1 << 20, 2048, 64 << 20},
		{512 << 20, 1024, 768, 64 << 20},
		{64 << 30, 20_000, 15_000, 1 << 30},
		{64 << 30, 1 << 20, 262_144, 1 << 30},
		{8 << 20, 1 << 20, 64, 1 << 20},
		{math.MaxInt64, math.MaxInt, math.MaxInt32, 1 << 30},
	} {
		if got := visitorsFor(c.memory, c.files); got != c.visitors {
			t.Errorf("%d bytes and %d files: %d visitors, want %d", c.memory, c.files, got, c.visitors)
		}
		if got := waitingFor(c.memory); got != c.waiting {
			t.Errorf("%d bytes: %d may wait, want %d", c.memory, got, c.waiting)
		}
	}
}

func TestVisitorsOfUDPAreThoseOfTheMachine(t *testing.T) {
	for _, c := range []struct {
		memory     int64
		ofOne, all int
	}{
		{512 << 20, 4096, 32_768},
		{16 << 20, 4096, 4096},
		{math.MaxInt64, 4096, math.MaxInt32},
	} {
		if got := flowsFor(c.memory, c.ofOne); got != c.all {
			t.Errorf("%d bytes: %d visitors, want %d", c.memory, got, c.all)
		}
	}
}

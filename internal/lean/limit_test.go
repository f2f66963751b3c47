package lean

import (
	"math"
	"testing"
)

func TestCollectorLeavesRoomForTheKernel(t *testing.T) {
	const none = int64(math.MaxInt64)
	for _, c := range []struct{ group, machine, want int64 }{
		{64 << 20, 8 << 30, 56 << 20},
		{none, 1 << 30, 768 << 20},
		{4 << 30, 1 << 30, 768 << 20},
		{none, none, none},
	} {
		if got := collectorShare(c.group, c.machine); got != c.want {
			t.Errorf("of %d and %d: got %d, want %d", c.group, c.machine, got, c.want)
		}
	}
}

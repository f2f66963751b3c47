package lean

import "testing"

func TestCollectorLeavesRoomForTheKernel(t *testing.T) {
	if got, want := collectorShare(64<<20), int64(56<<20); got != want {
		t.Errorf("of 64 MiB: got %d, want %d", got, want)
	}
}

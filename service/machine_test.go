package service

import (
	"math"
	"testing"
)

func TestVisitorsOfASmallMachine(t *testing.T) {
	for _, c := range []struct {
		memory   int64
		files    int
		visitors int
		unread   int64
	}{
		{256 << 20, 65_536, 2048, 16 << 20},
		{4 << 30, 65_536, 16_384, 64 << 20},
		{4 << 30, 4096, 2048, 64 << 20},
		{16 << 20, 256, 1024, 4 << 20},
		{math.MaxInt64, math.MaxInt, 16_384, 64 << 20},
	} {
		if got := visitorsFor(c.memory, c.files); got != c.visitors {
			t.Errorf("%d bytes and %d files: %d visitors, want %d", c.memory, c.files, got, c.visitors)
		}
		if got := unreadFor(c.memory); got != c.unread {
			t.Errorf("%d bytes: %d may wait, want %d", c.memory, got, c.unread)
		}
	}
}

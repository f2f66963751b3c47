package service

import (
	"math"
	"testing"

	"adit/internal/config"
)

// What the file may say is more than a machine of 32 bits can count.
func TestInspectorHasTheMemoryThatTheFileSays(t *testing.T) {
	for _, mib := range []int{1, 2048, 4096} {
		want := int(min(int64(mib)<<20, math.MaxInt))
		s := newSettings(Daemon{}, &config.File{Inspector: config.Inspector{MemoryMiB: mib}})
		if got := s.inspect().Memory; got != want {
			t.Errorf("memory_mib = %d: got %d bytes, want %d", mib, got, want)
		}
	}
}

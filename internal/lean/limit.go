package lean

import (
	"math"
	"os"
	"runtime/debug"

	"adit/internal/allowance"
)

// WithinLimit makes the garbage collector keep the process within the memory limit of its container
// or service, or else the machine's memory, unless GOMEMLIMIT in the environment says otherwise.
// Without it, the heap grows to twice what is in use, and the kernel kills a process that a little
// garbage collection would have saved.
func WithinLimit() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit := collectorShare(allowance.Group(), allowance.Memory()); limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit)
	}
}

// collectorShare is what the collector may let the process take of what its group and
// the machine have: the rest is for what the kernel counts besides, as sockets'
// buffers, and of a machine for its other programs.
func collectorShare(group, machine int64) int64 {
	if group < math.MaxInt64 {
		group -= group / 8
	}
	if machine < math.MaxInt64 {
		machine -= machine / 4
	}
	return min(group, machine)
}

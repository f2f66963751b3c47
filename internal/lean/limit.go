package lean

import (
	"math"
	"os"
	"runtime/debug"

	"adit/internal/allowance"
)

// WithinLimit has the garbage collector keep the process within the memory that
// its container or service may have, or the machine has, unless the environment's
// GOMEMLIMIT says something else. Without it the heap grows to twice what is in use,
// and the kernel kills what a little collecting would have saved.
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

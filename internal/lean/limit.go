package lean

import (
	"math"
	"os"
	"runtime/debug"
)

// WithinLimit has the garbage collector keep the process within the memory that
// its container or service may have, where there is such a bound and the
// environment's GOMEMLIMIT says nothing else. Without it the heap grows to twice
// what is in use, and the kernel kills what a little collecting would have saved.
func WithinLimit() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if given := memoryGiven("/"); given < math.MaxInt64 {
		debug.SetMemoryLimit(collectorShare(given))
	}
}

// collectorShare is what the collector may let the process take of given bytes:
// the rest is for what the kernel counts besides, as sockets' buffers.
func collectorShare(given int64) int64 { return given - given/8 }

// Package lean gives back the memory that starting a program took and running it
// does not need: garbage, and pages of the program that only its start touched.
// And it keeps the program within the memory that its container may have.
package lean

import (
	"context"
	"runtime/debug"
	"time"
)

// settled is how long after its start a program has its connections.
const settled = 3 * time.Second

// AfterStart waits until the program has settled, gives back what it no longer
// needs, once, and returns. It returns at once when ctx ends.
func AfterStart(ctx context.Context) {
	timer := time.NewTimer(settled)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	debug.FreeOSMemory()
	forgetProgram()
}

// Package lean releases memory that the program needed to start but does not need to run: garbage,
// and pages of the program that only its start touched. It also keeps the program within the memory
// limit of its container.
package lean

import (
	"context"
	"runtime/debug"
	"time"
)

// settled are the times after a start when a program may have its connections: most
// have them within the first, and over a slow network within the second.
var settled = [...]time.Duration{time.Second, 3 * time.Second}

// AfterStart releases what a program that has settled no longer needs, at each of these times, and
// then returns. It returns at once when ctx ends.
func AfterStart(ctx context.Context) {
	begun := time.Now()
	for _, after := range settled {
		timer := time.NewTimer(after - time.Since(begun))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		debug.FreeOSMemory()
		forgetProgram()
	}
}

package daemon

import (
	"context"
	"time"

	"adit/localapi/client"
)

// RemoveTimeout is how long giving back a tunnel that nobody wants any more may take, such as that
// of a short form after Ctrl-C.
const RemoveTimeout = 10 * time.Second

// busyTries and busyWait bound how long a command waits for somebody else's change.
const (
	busyTries = 20
	busyWait  = 250 * time.Millisecond
)

// Patiently repeats do while another change is in progress.
func Patiently[T any](ctx context.Context, do func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		v, err := do()
		if try == busyTries || !client.IsCode(err, client.ErrorCodeControlBusy) {
			return v, err
		}
		timer := time.NewTimer(busyWait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return v, ctx.Err()
		case <-timer.C:
		}
	}
}

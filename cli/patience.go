package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"adit/localapi/client"
)

// busyTries and busyWait bound how long a command waits for another's change.
const (
	busyTries = 20
	busyWait  = 250 * time.Millisecond
)

// patiently does it again while another change is being made.
func patiently[T any](ctx context.Context, do func() (T, error)) (T, error) {
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

// waitUntold is how long somebody looks at a screen with nothing on it.
var waitUntold = 2 * time.Second // tests shorten it

// tellOfWait says on a screen what the session waits for, if that takes longer than
// people wait without a word; ended is called once the wait is over.
func (e *Env) tellOfWait(ctx context.Context, c *client.Client) (ended func()) {
	if !e.std.Terminal || e.std.JSON {
		return func() {}
	}
	ctx, stop := context.WithTimeout(ctx, removeTimeout)
	var telling sync.WaitGroup
	telling.Go(func() {
		timer := time.NewTimer(waitUntold)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if st, err := c.Status(ctx); err == nil && !st.Connected {
			fmt.Fprintf(e.std.Err, "Waiting for the session, which is %s\n", stateReason(st))
		}
	})
	return func() {
		stop()
		telling.Wait()
	}
}

package publish

import (
	"context"
	"fmt"
	"sync"
	"time"

	"adit/cli/agent"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/localapi/client"
)

// waitUntold is how long a person looks at a screen with nothing on it.
const waitUntold = 2 * time.Second

// tellOfWait says on a screen what the session is waiting for, if that takes longer than people
// wait without a word. ended must be called once the wait is over.
func tellOfWait(ctx context.Context, std *stdio.Streams, c *client.Client) (ended func()) {
	if !std.Terminal || std.JSON {
		return func() {}
	}
	ctx, stop := context.WithTimeout(ctx, daemon.RemoveTimeout)
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
			fmt.Fprintf(std.Err, "Waiting for the session, which is %s\n", agent.StateReason(st))
		}
	})
	return func() {
		stop()
		telling.Wait()
	}
}

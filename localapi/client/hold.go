package client

import (
	"context"
	"net/http"
)

// HoldTunnel holds a tunnel that was created with Held until ctx ends. It then returns nil, and the
// daemon deletes the tunnel 15 s later unless somebody else holds it. A lost connection is restored
// by itself. A refusal (*Error below 500) is returned: ErrorCodeNotFound if the tunnel is gone.
func (c *Client) HoldTunnel(ctx context.Context, id string) error {
	waits := backoff{next: firstWait}
	for {
		err := c.lines(ctx, http.MethodPost, tunnelPath(id)+"/hold", nil, func(string) bool {
			waits.next = firstWait
			return true
		})
		if ctx.Err() != nil {
			return nil
		}
		if refused(err) {
			return err
		}
		if !waits.wait(ctx) {
			return nil
		}
	}
}

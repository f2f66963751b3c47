package bucket

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// clusterWait is how long a store waits for a cluster.
const clusterWait = 55 * time.Second

// TestAStoreIsOpenSoonAfterItsServersHaveALeader uses servers that never answer requests made
// before they had a leader, and servers that are slow.
func TestAStoreIsOpenSoonAfterItsServersHaveALeader(t *testing.T) {
	for _, c := range []struct{ leader, takes, most time.Duration }{
		{4 * time.Second, 0, 6500 * time.Millisecond},
		{7 * time.Second, 0, 9 * time.Second},
		{9 * time.Second, 0, 11500 * time.Millisecond},
		{0, 3 * time.Second, 15 * time.Second},
		{0, 15 * time.Second, clusterWait},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), clusterWait)
			defer cancel()
			err := Patiently(ctx, func(ctx context.Context) error {
				var answered <-chan time.Time
				if time.Since(begun) >= c.leader {
					answered = time.After(c.takes)
				}
				select {
				case <-answered:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			if took := time.Since(begun); err != nil || took > c.most {
				t.Errorf("a leader after %v that takes %v: %v after %v, want %v at most", c.leader, c.takes, err, took, c.most)
			}
		})
	}
}

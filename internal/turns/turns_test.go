package turns

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneClientDoesNotKeepOthersWaiting has a client with very many agents write
// as many claims at once, where a write takes as long as on a slow disk.
func TestOneClientDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, each = 64, 8
		turns := New(most, each)
		disk := make(chan struct{}, 1)
		var waiting, peak, done atomic.Int32
		write := func() error {
			peak.Store(max(peak.Load(), waiting.Add(1)))
			disk <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-disk
			waiting.Add(-1)
			done.Add(1)
			return nil
		}
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { _ = turns.Take(t.Context(), "many", write) })
		}
		synctest.Wait()
		begun := time.Now()
		if err := turns.Take(t.Context(), "one", write); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > (each+1)*10*time.Millisecond {
			t.Errorf("another client's claim took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if err := turns.Take(ctx, "many", write); !errors.Is(err, context.Canceled) {
				t.Errorf("a claim that nobody waits for any more: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		if done.Load() != 1001 || peak.Load() > each+1 {
			t.Errorf("%d writes were made, %d at once", done.Load(), peak.Load())
		}
		if len(turns.ofClient) != 0 || len(turns.all) != 0 {
			t.Errorf("%d clients and %d places are left", len(turns.ofClient), len(turns.all))
		}
	})
}

package publish

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := until(t.Context(), time.Now().Add(2*time.Hour).Round(0))
		defer stop()
		time.Sleep(2*time.Hour - 2*time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("it ended before its time")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), errOver) {
			t.Errorf("it goes on after its time, or ended by %v", context.Cause(ctx))
		}
	})
}

// TestUntilIsStopped: nothing is left of it, which synctest sees to.
func TestUntilIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := until(t.Context(), time.Now().Add(time.Hour).Round(0))
		stop()
		synctest.Wait()
		if ctx.Err() == nil || errors.Is(context.Cause(ctx), errOver) {
			t.Errorf("it ended by %v", context.Cause(ctx))
		}
		if forever, _ := until(t.Context(), time.Time{}); forever != t.Context() {
			t.Error("what has no end is another context")
		}
	})
}

package turn

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOwnWorkIsWaitedForAndRequestsAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Turn
		c.Lock()
		begin := time.Now()
		time.AfterFunc(time.Second, c.Unlock)
		if !c.TryLock() || time.Since(begin) < time.Second {
			t.Fatalf("a request did not wait for the agent's own work; it took %v", time.Since(begin))
		}
		begin = time.Now()
		if c.TryLock() || c.TryOwn() || time.Since(begin) != 0 {
			t.Errorf("beside a request: taken, or told after %v", time.Since(begin))
		}
		time.AfterFunc(time.Second, c.Unlock)
		if c.Lock(); time.Since(begin) < time.Second {
			t.Error("own work did not wait for a request")
		}
		begin = time.Now()
		if c.TryLock() || time.Since(begin) < ownWork || time.Since(begin) > 2*ownWork {
			t.Errorf("own work that does not end: told after %v", time.Since(begin))
		}
		c.Unlock()
		if !c.TryOwn() {
			t.Error("given back, and not to be had")
		}
	})
}

package proof

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestNamesWhoseDNSIsSilentKeepNobodyElseWaiting makes a client with many agents ask for
// names of its own, whose name servers never answer.
func TestNamesWhoseDNSIsSilentKeepNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{txt: map[string]string{}}
		p := New([]byte("key"), func(ctx context.Context, name string) ([]string, error) {
			if strings.HasSuffix(name, ".silent.example.") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return z.lookup(ctx, name)
		})
		z.txt["_adit.shop.example."] = p.Value("other")
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		for range 10 * maxAsking {
			asking.Go(func() { _, _ = p.Find(ctx, "a.b.c.silent.example", "silent") })
		}
		synctest.Wait()
		begun := time.Now()
		if found, err := p.Find(ctx, "shop.example", "other"); !found || err != nil || time.Since(begun) > time.Second {
			t.Errorf("got %v, %v after %v", found, err, time.Since(begun))
		}
		cancel()
		asking.Wait()
	})
}

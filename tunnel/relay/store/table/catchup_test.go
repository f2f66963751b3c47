package table

import (
	"sync"
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestCatchUpReadsWhatTheWatchDoesNotBring has one of two nodes use a server that lags.
func TestCatchUpReadsWhatTheWatchDoesNotBring(t *testing.T) {
	url := natstest.Start(t).URL()
	a, b := begin(t, url), begin(t, url)
	at, bt := a.table(t, "claims"), b.table(t, "claims")
	b.end()
	bt.kv = newLagging(t, bt.kv)
	var following sync.WaitGroup
	t.Cleanup(following.Wait)
	following.Go(func() { bt.follow(t.Context(), bt.anew(t.Context(), nil)) })
	put(t, at, "one", "a")
	rev := put(t, at, "two", "a")
	put(t, at, "later", "a")
	if _, _, ok := bt.Get("two"); ok {
		t.Fatal("the watch does not lag")
	}
	if err := bt.CatchUp(t.Context(), rev); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"one", "two"} {
		if _, _, ok := bt.Get(key); !ok {
			t.Errorf("%s is not in memory", key)
		}
	}
	if err := at.CatchUp(t.Context(), rev); err != nil {
		t.Fatal(err)
	}
}

package table

import (
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/store/natstest"
)

// TestTouchIsLostUntilTheBucketIsRead, whatever happens first once it can be reached again.
func TestTouchIsLostUntilTheBucketIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v touch
		expect := func(when string, want bool) {
			t.Helper()
			if got := v.kept(); got != want {
				t.Errorf("%s: %t, want %t", when, got, want)
			}
		}
		v.known()
		expect("as it opens", false)
		v.renew()
		expect("once the leader has answered", true)
		time.Sleep(touchTime)
		expect("away for as long as marks are kept", true)
		time.Sleep(time.Second)
		expect("away for longer", false)
		v.renew()
		expect("and back, not having read what there is", false)
		v.known()
		expect("having read it", true)
		time.Sleep(2 * touchTime)
		v.known()
		expect("away again, having read it at once", true)
		v.renew()
		expect("and asked the leader", true)
	})
}

// TestWhatWasRemovedWhileANodeWasAwayForLongIsForgotten although its marker is gone.
func TestWhatWasRemovedWhileANodeWasAwayForLongIsForgotten(t *testing.T) {
	tab := begin(t, natstest.Start(t).URL()).table(t, "policies")
	put(t, tab, "before", "there")
	tab.told(Change{Key: "removed", Revision: 2, Value: []byte(`"removed"`)})
	put(t, tab, "since", "there")
	put(t, tab, "since", "there still")
	if err := tab.keepUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	tab.touch.mu.Lock()
	tab.touch.at -= 2 * touchTime
	tab.touch.mu.Unlock()
	for range mendRounds {
		if err := tab.keepUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tab.refollow()
	is(t, tab, "removed", "")
	is(t, tab, "before", "there")
}

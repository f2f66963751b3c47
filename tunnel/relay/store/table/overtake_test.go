package table

import (
	"encoding/json"
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestWhatTheStoreLostCanBeChanged has nodes know of writes that the store does not have,
// as of servers that lost their power together: what is changed then is so at all nodes.
func TestWhatTheStoreLostCanBeChanged(t *testing.T) {
	url := natstest.Start(t).URL()
	tables := make([]*Table[string], 2)
	for i := range tables {
		tables[i] = begin(t, url).table(t, "policies")
	}
	one, other := tables[0], tables[1]
	put(t, one, "older", "before")
	put(t, one, "removed", "before")
	eventually(t, "both have what the store has", func() bool { return other.Revision("removed") > 0 })
	for _, tab := range tables {
		for key, c := range map[string]Change{
			"older": {Revision: 50}, "none": {Revision: 60}, "removed": {Revision: 70, Removed: true}, "dropped": {Revision: 80},
		} {
			c.Key = key
			if !c.Removed {
				c.Value, _ = json.Marshal("lost")
			}
			tab.told(c)
		}
	}
	everywhere := func(key, want string) {
		t.Helper()
		for _, tab := range tables {
			eventually(t, key+" is "+want, func() bool {
				v, _, ok := tab.Get(key)
				return ok == (want != "") && v == want
			})
		}
	}
	for _, key := range []string{"older", "none", "removed"} {
		put(t, one, key, "new "+key)
		everywhere(key, "new "+key)
		put(t, other, key, "newer "+key)
		everywhere(key, "newer "+key)
	}
	if err := one.Drop(t.Context(), "dropped"); err != nil {
		t.Fatal(err)
	}
	everywhere("dropped", "")
	for _, tab := range []*Table[string]{one, begin(t, url).table(t, "policies")} {
		if n := len(tab.List()); n != 3 {
			t.Errorf("there are %d values, want 3", n)
		}
	}
}

package table

import (
	"encoding/json"
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// lose has nodes know of writes that the store does not have.
func lose(t *testing.T, tables ...*Table[string]) {
	t.Helper()
	put(t, tables[0], "older", "before")
	put(t, tables[0], "removed", "before")
	for _, tab := range tables {
		eventually(t, "all have what the store has", func() bool { return tab.Revision("removed") > 0 })
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
}

// is waits until a key has a value; none if that is empty.
func is(t *testing.T, tab *Table[string], key, want string) {
	t.Helper()
	eventually(t, key+" is "+want, func() bool {
		v, _, ok := tab.Get(key)
		return ok == (want != "") && v == want
	})
}

// TestWhatTheStoreLostIsWrittenAgain by any node that knows it, and a node that starts later
// gets it.
func TestWhatTheStoreLostIsWrittenAgain(t *testing.T) {
	url := natstest.Start(t).URL()
	one, other := begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies")
	put(t, one, "kept", "kept")
	lose(t, one, other)
	other.told(Change{Key: "older", Revision: 55, Value: []byte(`"newest"`)})
	keepUps(t, one, other)
	later := begin(t, url).table(t, "policies")
	for _, tab := range []*Table[string]{one, other, later} {
		is(t, tab, "older", "newest")
		is(t, tab, "none", "lost")
		is(t, tab, "dropped", "lost")
		is(t, tab, "removed", "")
		is(t, tab, "kept", "kept")
		if n := len(tab.List()); n != 4 {
			t.Errorf("there are %d values, want 4", n)
		}
	}
	before, _ := later.leader.Last(t.Context())
	keepUps(t, one)
	if now, err := later.leader.Last(t.Context()); err != nil || now != before {
		t.Errorf("where nothing is lost %d messages were written, %v", now-before, err)
	}
}

// TestWhatTheStoreLostCanBeChanged has nodes know of writes that the store has lost, as when
// its servers lost power together. A later change takes effect at all nodes.
func TestWhatTheStoreLostCanBeChanged(t *testing.T) {
	url := natstest.Start(t).URL()
	one, other := begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies")
	lose(t, one, other)
	everywhere := func(key, want string) {
		t.Helper()
		for _, tab := range []*Table[string]{one, other} {
			is(t, tab, key, want)
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

// TestWhatIsWrittenInPlaceOfLostWritesHidesThemNot: others may have written since, so
// revisions are used again and a new watch delivers more than was lost.
func TestWhatIsWrittenInPlaceOfLostWritesHidesThemNot(t *testing.T) {
	url := natstest.Start(t).URL()
	one, other := begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies")
	put(t, one, "older", "before")
	put(t, one, "removed", "before")
	put(t, one, "gone", "before")
	is(t, other, "gone", "before")
	if err := one.keepUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Drop(t.Context(), "gone"); err != nil { // which no server lost
		t.Fatal(err)
	}
	one.told(Change{Key: "older", Revision: 5, Value: []byte(`"lost"`)})
	one.told(Change{Key: "none", Revision: 6, Value: []byte(`"lost"`)})
	one.told(Change{Key: "removed", Revision: 7, Removed: true})
	for range 5 {
		put(t, other, "since", "since")
	}
	one.refollow()
	eventually(t, "what was lost is suspected", func() bool {
		one.suspects.mu.Lock()
		defer one.suspects.mu.Unlock()
		return len(one.suspects.byKey) == 3
	})
	keepUps(t, one)
	for _, tab := range []*Table[string]{one, other, begin(t, url).table(t, "policies")} {
		is(t, tab, "older", "lost")
		is(t, tab, "none", "lost")
		is(t, tab, "removed", "")
		is(t, tab, "gone", "")
		is(t, tab, "since", "since")
	}
}

package table

import (
	"testing"

	"adit/tunnel/relay/store/bucket"
)

// TestWhatIsThereIsNotAddedAnew writes at a node that does not know what is there. Another
// node's value stays, and a removal does not count as a value.
func TestWhatIsThereIsNotAddedAnew(t *testing.T) {
	tab := begin(t).table(t, "claims")
	add := func(key, value string, repeated bool) (uint64, error) {
		return tab.add(t.Context(), key, []byte(value), repeated)
	}
	there := func(want string) {
		t.Helper()
		if e, err := tab.kv.Get(t.Context(), "k"); err != nil || string(e.Value()) != want {
			t.Fatalf("%v; it is not %s that is there", err, want)
		}
	}
	first, err := add("k", `"mine"`, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, repeated := range []bool{false, true} {
		if _, err := add("k", `"other"`, repeated); !bucket.IsConflict(err) {
			t.Errorf("repeated: %v: another value is written over one that is there: %v", repeated, err)
		}
	}
	if _, err := add("k", `"mine"`, false); !bucket.IsConflict(err) {
		t.Errorf("the same value is written by another: %v", err)
	}
	if rev, err := add("k", `"mine"`, true); err != nil || rev != first {
		t.Errorf("written by a try whose answer was lost: revision %d, %v; want %d", rev, err, first)
	}
	there(`"mine"`)
	if err := tab.kv.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if rev, err := add("k", `"next"`, false); err != nil || rev <= first {
		t.Errorf("after a removal: revision %d, %v", rev, err)
	}
	there(`"next"`)
}

package table

import (
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestWhatIsKnownOfAKey checks that a removal is known, but is not a value that others have to
// know.
func TestWhatIsKnownOfAKey(t *testing.T) {
	tab := begin(t, natstest.Start(t).URL()).table(t, "policies")
	if rev := tab.Revision("a"); rev != 0 || tab.Knows("a", 1) {
		t.Errorf("of nothing: revision %d, known: %t", rev, tab.Knows("a", 1))
	}
	rev := put(t, tab, "a", "first")
	if got := tab.Revision("a"); got != rev || rev == 0 || !tab.Knows("a", rev) || tab.Knows("a", rev+1) {
		t.Errorf("of revision %d: %d, known: %t, and the next: %t", rev, got, tab.Knows("a", rev), tab.Knows("a", rev+1))
	}
	if err := tab.Drop(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got := tab.Revision("a"); got != 0 || !tab.Knows("a", rev) {
		t.Errorf("removed: revision %d, known: %t", got, tab.Knows("a", rev))
	}
	// The revision of the removal's own mark comes by the watch alone.
	eventually(t, "the removal's mark is known", func() bool { return tab.Knows("a", rev+1) })
	if got := tab.Revision("a"); got != 0 {
		t.Errorf("after the mark has come: revision %d", got)
	}
}

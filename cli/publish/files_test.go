package publish

import (
	"strings"
	"testing"
)

// TestFolderOfAnyNameIsPublished: a name that the daemon takes for no tunnel's is
// left to it.
func TestFolderOfAnyNameIsPublished(t *testing.T) {
	for name, want := range map[string]bool{
		"photos": true, "Fotos München": true, " ": false, strings.Repeat("a", 65): false, "\xff": false, "a\u202eb": false,
	} {
		if got := nameable(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

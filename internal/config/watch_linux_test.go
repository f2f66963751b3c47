package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Systems that are built as a whole, as NixOS, and tools that keep times put files
// in place that are of one size and of one time.
func TestStampTellsFilesOfOneSizeAndTimeApart(t *testing.T) {
	dir := t.TempDir()
	long := time.Unix(1, 0)
	path, other := filepath.Join(dir, Name), filepath.Join(dir, "new")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	put(path, "# 8000")
	before := stamp(path)
	if again := stamp(path); again != before {
		t.Errorf("got %v, then %v of a file that nobody touched", before, again)
	}
	// The kernel's clock for files goes on by some milliseconds at a time.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		put(other, "# 8001")
		if stamp(other) != before {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("got %v of either file", before)
		}
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if after := stamp(path); after == before {
		t.Errorf("got %v of either file", after)
	}
}

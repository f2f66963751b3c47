package update

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// nextPrefix begins the names of new programs that are not in place yet.
const nextPrefix = ".adit-update-"

// leftAfter is when such a file counts as left behind: an update under way has
// its own for the seconds that writing it takes.
const leftAfter = time.Hour

// Sweep removes what killed updates of exe have left next to it, and returns how many files it
// removed. What cannot be removed stays: a system on which open files cannot be removed keeps those
// in use.
func Sweep(exe string) int {
	dir := filepath.Dir(exe)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	swept := 0
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), nextPrefix) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < leftAfter {
			continue
		}
		if os.Remove(filepath.Join(dir, e.Name())) == nil {
			swept++
		}
	}
	return swept
}

package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIsNoStateFileIsPutAside as one that does not read is: a daemon that did not
// start at every start of the machine would be worse.
func TestWhatIsNoStateFileIsPutAside(t *testing.T) {
	for _, name := range []string{authFile, tunnelsFile} {
		for what, make := range map[string]func(path string) error{
			"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "kept"), 0o700) },
			"a huge file": func(path string) error {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					return err
				}
				return os.Truncate(path, maxStateFile+1)
			},
			"a pipe": makePipe,
		} {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if err := make(path); err != nil {
				t.Logf("%s cannot be made here: %v", what, err)
				continue
			}
			f, err := Open(dir)
			if err != nil {
				t.Errorf("%s as %s: %v", what, name, err)
				continue
			}
			saved, err := f.Load()
			if err != nil || len(saved.Notices) != 1 {
				t.Errorf("%s as %s: got %q, %v, want one notice", what, name, saved.Notices, err)
				continue
			}
			if got := saved.Notices[0]; !strings.Contains(got, name) || !strings.Contains(got, "began without it") {
				t.Errorf("%s as %s: got %q, want it to name the file", what, name, got)
			}
			if kept, _ := filepath.Glob(path + ".corrupt-*"); len(kept) != 1 {
				t.Errorf("%s as %s: kept %v, want one", what, name, kept)
			}
			f.Close()
		}
	}
}

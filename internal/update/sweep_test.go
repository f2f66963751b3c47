package update

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestWhatAKilledUpdateLeftIsRemoved(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, exe string){
		"at a start": func(t *testing.T, exe string) {
			if n := Sweep(exe); n != 1 {
				t.Errorf("got %d files removed, want 1", n)
			}
		},
		"by the next update": func(t *testing.T, exe string) {
			if err := Replace(t.Context(), exe, []byte("new"), func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			exe := filepath.Join(dir, "adit")
			long := time.Now().Add(-leftAfter - time.Minute)
			for file, changed := range map[string]time.Time{
				"adit":              long,
				"other":             long,
				"x.adit-update-1":   long,
				".adit-update-left": long,
				".adit-update-now":  time.Now().Add(-leftAfter / 2),
				".adit-update-then": time.Now().Add(time.Hour), // of a clock that was set
			} {
				write(t, filepath.Join(dir, file), "x")
				if err := os.Chtimes(filepath.Join(dir, file), changed, changed); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(dir, ".adit-update-folder", "kept"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(filepath.Join(dir, ".adit-update-folder"), long, long); err != nil {
				t.Fatal(err)
			}
			use(t, exe)
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Name())
			}
			want := []string{".adit-update-folder", ".adit-update-now", ".adit-update-then", "adit", "other", "x.adit-update-1"}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestSweepOfNoFolderIsNothing(t *testing.T) {
	if n := Sweep(filepath.Join(t.TempDir(), "none", "adit")); n != 0 {
		t.Errorf("got %d files removed, want 0", n)
	}
}

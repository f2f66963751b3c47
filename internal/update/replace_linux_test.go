package update

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A machine whose power goes amid an update must not be left without a program.
func TestReplaceNeverLeavesThePlaceEmpty(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "adit")
	write(t, exe, "old")
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Skipf("the system tells nothing of folders: %v", err)
	}
	defer w.Close()
	if err := w.Add(dir); err != nil {
		t.Skipf("the system tells nothing of folders: %v", err)
	}
	if err := Replace(t.Context(), exe, []byte("new"), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(dir, "last")
	write(t, last, "")
	limit := time.After(time.Minute)
	for {
		select {
		case e := <-w.Events:
			if e.Name == exe && (e.Has(fsnotify.Rename) || e.Has(fsnotify.Remove)) {
				t.Errorf("got %s, after which there was no program", e)
			}
			if e.Name == last {
				return
			}
		case err := <-w.Errors:
			t.Fatal(err)
		case <-limit:
			t.Fatal("the system tells nothing")
		}
	}
}

package lockfile

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestOneOwnerAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("second owner: got error %v, want ErrHeld", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := Take(path)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	second.Release()
}

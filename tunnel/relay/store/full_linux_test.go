package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"adit/internal/require"
	"adit/tunnel/wire"
)

// TestStoreGoesOnAfterTheDiskWasFull fills the disk until both a bucket and the access events
// reject writes, and then makes room. The store accepts data again without a restart, and has
// everything that it acknowledged.
func TestStoreGoesOnAfterTheDiskWasFull(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := open(t, dir)
	var names []string // that were acknowledged
	add := func(name string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Clients.Add(ctx, name, [32]byte{1}, "h")
		if err == nil {
			names = append(names, name)
		}
		return err
	}
	visit := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return s.Events.Append(ctx, []wire.Access{{Time: time.Now(), Path: "/"}})
	}
	if err := add("before"); err != nil {
		t.Fatal(err)
	}
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = io.CopyN(ballast, zeros{}, 4096)
	}
	ballast.Close()
	for tries, full := 0, 0; full < 2; tries++ {
		full = 0
		for _, err := range []error{visit(), add(fmt.Sprint("full", tries))} {
			if err != nil {
				full++
			}
		}
		if tries > 5000 {
			t.Fatal("a full disk takes data")
		}
	}
	eventually(t, "the store says that it is full", func() bool { return s.Condition() == Full })
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	n := 0
	eventually(t, "it takes data again", func() bool { n++; return visit() == nil && add(fmt.Sprint("after", n)) == nil })
	eventually(t, "the store says that it is there", func() bool { return s.Condition() == Here })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	for _, name := range names {
		if _, ok := s.Clients.Get(name); !ok {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

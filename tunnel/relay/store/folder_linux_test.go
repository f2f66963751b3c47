package store

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"adit/internal/require"
)

// TestFullDiskIsOneClearSentence checks that a relay whose disk is full says so at once. The
// store's server only says that a stream could not be created.
func TestFullDiskIsOneClearSentence(t *testing.T) {
	require.Root(t)
	for _, size := range []string{"8k", "64k", "100k"} { // for an empty bucket; for some; for all, but not for the streams
		t.Run(size, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
				t.Skipf("a small file system cannot be mounted here: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			begin := time.Now()
			s, err := Open(t.Context(), Config{Dir: dir, Domain: "example.com"})
			if err == nil {
				s.Close()
				t.Fatal("it opened")
			}
			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room") {
				t.Errorf("got %v, want that the disk is full", err)
			}
			if errors.Is(err, context.DeadlineExceeded) || time.Since(begin) >= 30*time.Second {
				t.Errorf("it was said after %v, when all patience had ended", time.Since(begin))
			}
		})
	}
}

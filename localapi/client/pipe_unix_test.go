//go:build !windows

package client

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAPipeIsNotReadFrom: who looks for the daemon would wait for a writer.
func TestAPipeIsNotReadFrom(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "runtime.json"), 0o600); err != nil {
		t.Skip("pipes cannot be made:", err)
	}
	if _, _, err := Discover(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("got %v, want that it is not a file", err)
	}
}

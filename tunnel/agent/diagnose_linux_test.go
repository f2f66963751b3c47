package agent

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"adit/internal/require"
	"adit/tunnel/agent/diagnosis"
)

func TestDiagnoseSeesAFullDisk(t *testing.T) {
	require.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("adit-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	a, stop := startAgent(t, Config{StateDir: dir})
	defer stop()
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	if _, err := io.Copy(fill, rand.Reader); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got error %v, want a full disk", err)
	}
	got := a.Diagnose(t.Context())[0]
	if got.Status != diagnosis.Failed || !strings.Contains(got.Result, "no space left") {
		t.Errorf("got %+v, want the full disk", got)
	}
	if err := fill.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if got := a.Diagnose(t.Context())[0]; got.Status != diagnosis.OK {
		t.Errorf("got %+v once there is room", got)
	}
}

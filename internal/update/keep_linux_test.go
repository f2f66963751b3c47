package update

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// capNetBindService is what setcap cap_net_bind_service=+ep writes: version 2, in
// effect, bit 10 of what is permitted (linux/capability.h).
var capNetBindService = []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

func oldProgram(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "adit")
	if err := os.WriteFile(exe, []byte("old"), 0o700); err != nil {
		t.Fatal(err)
	}
	return exe
}

func TestReplaceKeepsWhatWasSetOnTheProgram(t *testing.T) {
	exe := oldProgram(t)
	if err := os.Chmod(exe, 0o750); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	if root {
		if err := os.Chown(exe, 1234, 2345); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(exe, capabilities, capNetBindService, 0); err != nil {
			t.Logf("capabilities are left out: %v", err)
			root = false
		}
	}
	if err := Replace(t.Context(), exe, []byte("new"), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(exe)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o750 {
		t.Errorf("the mode was rwxr-x--- and is %v", info.Mode())
	}
	if !root {
		t.Skip("only root may set owner and capabilities")
	}
	if is := info.Sys().(*syscall.Stat_t); is.Uid != 1234 || is.Gid != 2345 {
		t.Errorf("it was of 1234:2345 and is of %d:%d", is.Uid, is.Gid)
	}
	got := make([]byte, 64)
	n, err := unix.Getxattr(exe, capabilities, got)
	if err != nil || string(got[:n]) != string(capNetBindService) {
		t.Errorf("capabilities: got %x, %v", got[:max(n, 0)], err)
	}
}

func TestReplaceSaysWhoMay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may become another user")
	}
	exe := oldProgram(t)
	err := asNobody(t, filepath.Join(t.TempDir()), func() error {
		return Replace(t.Context(), exe, []byte("new"), func(context.Context) error { return nil })
	})
	if err == nil || !strings.Contains(err.Error(), "sudo") || strings.Contains(err.Error(), nextPrefix) {
		t.Errorf("got %v, want the folder and to be sent to sudo", err)
	}
}

// A relay that could no longer listen at its ports is worse than one that is old.
func TestReplaceRefusesWhereCapabilitiesWouldBeLost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may set capabilities")
	}
	exe := oldProgram(t)
	if err := unix.Setxattr(exe, capabilities, capNetBindService, 0); err != nil {
		t.Skipf("capabilities: %v", err)
	}
	err := asNobody(t, filepath.Dir(exe), func() error {
		return Replace(t.Context(), exe, []byte("new"), func(context.Context) error { return errors.New("it was replaced") })
	})
	if err == nil || !strings.Contains(err.Error(), "sudo") {
		t.Errorf("got %v, want to be sent to sudo", err)
	}
	left, err := os.ReadDir(filepath.Dir(exe))
	if data, _ := os.ReadFile(exe); err != nil || string(data) != "old" || len(left) != 1 {
		t.Errorf("got %q among %v, %v; want the old program alone", data, left, err)
	}
}

// asNobody calls do without root's rights, as the owner of dir.
func asNobody(t *testing.T, dir string, do func() error) error {
	t.Helper()
	const nobody, keep = 65534, ^uintptr(0)
	for _, err := range []error{os.Chown(dir, nobody, nobody), os.Chmod(filepath.Dir(dir), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// Of this thread alone: the rest of the test stays root's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	be := func(user uintptr) {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, user, keep); errno != 0 {
			t.Fatal(errno)
		}
	}
	be(nobody)
	defer be(0)
	return do()
}

//go:build linux

package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSystemdStateIsReadFromProperties(t *testing.T) {
	for out, want := range map[string]string{
		"LoadState=loaded\nActiveState=active":                            Running,
		"LoadState=loaded\nActiveState=activating":                        Starting,
		"LoadState=loaded\nActiveState=failed":                            Failed,
		"LoadState=loaded\nActiveState=activating\nSubState=auto-restart": Failed,
		"LoadState=loaded\nActiveState=inactive":                          Stopped,
		"LoadState=not-found\nActiveState=active":                         NotInstalled,
	} {
		if got := systemdState(out); got != want {
			t.Errorf("%q: got %s, want %s", out, got, want)
		}
	}
}

func TestManagersWordsMakeASentence(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'Failed to stop adit.service: Access denied'; echo \"See system logs and 'systemctl status adit.service' for details.\"; exit 4": "Failed to stop adit.service: Access denied",
		"echo ' * one. '; echo; echo '* two'; exit 1": "* one; * two",
		"exit 3": "exit status 3",
	} {
		_, err := command(t.Context(), "sh", "-c", script)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) || exitCode(err) < 1 {
			t.Errorf("got %v (exit code %d), want the end %q", err, exitCode(err), want)
		}
	}
}

func TestInstallRefusesAProgramThatOthersMayReplace(t *testing.T) {
	exe := filepath.Join("/tmp", "adit-test-"+t.Name())
	if err := os.WriteFile(exe, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(exe)
	if err := checkExecutable(exe); err == nil || !strings.Contains(err.Error(), "/usr/local/bin") {
		t.Errorf("in /tmp: got error %v, want where to put it", err)
	}
	if err := checkExecutable("adit"); err == nil {
		t.Error("a relative path was accepted")
	}
	if err := checkExecutable("/etc"); err == nil {
		t.Error("a folder was accepted")
	}
	// Such a folder's owner, or anybody, replaces a file that is root's.
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := checkFolders(filepath.Join(open, "adit")); err == nil || !strings.Contains(err.Error(), open) {
		t.Errorf("in a folder that anybody may write to: got error %v, want the folder named", err)
	}
	info, err := os.Stat("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOwner("/bin/sh", info); err != nil {
		t.Errorf("/bin/sh: %v", err)
	}
}

func TestMainEndsOnSIGTERM(t *testing.T) {
	err := Main(context.Background(), func(ctx context.Context, _ func()) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return errors.New("stopped")
	})
	if err == nil || err.Error() != "stopped" {
		t.Errorf("got error %v, want what run returned", err)
	}
}

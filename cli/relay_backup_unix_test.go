//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"adit/cli/command"
)

// TestBackupLeavesWhatIsNoFile holds that a backup into a pipe, or a device as
// /dev/stdout, goes through it, and does not take its place; and that one through
// a link replaces the file at its end.
func TestBackupLeavesWhatIsNoFile(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":{"clients":[]}}`))
	}))
	defer s.Close()
	backup := func(path string) {
		t.Helper()
		env, out, errs := testEnv("")
		env.Getenv = func(name string) string {
			return map[string]string{"ADIT_RELAY_ADMIN_URL": s.URL, "ADIT_RELAY_ADMIN_TOKEN": "x"}[name]
		}
		if code := Run(t.Context(), env, []string{"relay", "backup", path}); code != command.ExitDone {
			t.Fatalf("got exit code %d, %q and %q", code, out, errs)
		}
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	backup(pipe)
	buf := make([]byte, 1<<10)
	n, err := reader.Read(buf)
	if err != nil || !json.Valid(buf[:n]) {
		t.Errorf("through the pipe: got %q, %v", buf[:n], err)
	}
	if stat, err := os.Lstat(pipe); err != nil || stat.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe is %v, %v", stat, err)
	}

	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	for _, err := range []error{os.WriteFile(file, []byte("old"), 0o644), os.Symlink("file", link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	backup(link)
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte("clients")) {
		t.Errorf("at the link's end: got %q, %v", text, err)
	}
	if stat, err := os.Stat(file); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("its keys may be read by %v, %v", stat.Mode(), err)
	}
	if stat, err := os.Lstat(link); err != nil || stat.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is %v, %v", stat, err)
	}
}

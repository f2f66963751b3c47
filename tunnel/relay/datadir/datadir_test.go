package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestWhatIsMadeOnceStays checks everything that a folder gets at the first start, and
// the messages about files with invalid contents.
func TestWhatIsMadeOnceStays(t *testing.T) {
	for file, c := range map[string]struct {
		read       func(dir string) (string, error)
		begins     string
		wrong      string // that a file may hold
		says       string // of it; empty: it is made anew
		secret     bool
		unreadable string
	}{
		AdminTokenFile: {AdminToken, "adit_admin_", "short", "holds fewer than 16 characters", true, "read the admin token: "},
		SetupCodeFile:  {SetupCode, "", "short", "", true, "read the set-up code: "},
		ResetKeyFile:   {resetKey, "", "short", "", true, "read the key of HTTP/3: "},
		NodeFile:       {NodeID, "n_", `{"id":"a b c"}`, "it has no node id; remove it", false, "read "},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		first, err := c.read(dir)
		if err != nil || len(first) < 16 || !strings.HasPrefix(first, c.begins) {
			t.Fatalf("%s: got %q, %v", file, first, err)
		}
		if again, err := c.read(dir); again != first || err != nil {
			t.Errorf("%s: then %q, %v", file, again, err)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && (info.Mode().Perm() == 0o600) != c.secret {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
		if other, err := c.read(t.TempDir()); other == first || err != nil {
			t.Errorf("%s: two folders have %q, %v", file, other, err)
		}
		if err := os.WriteFile(path, []byte(c.wrong+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := c.read(dir)
		if c.says == "" && (err != nil || len(got) < 16 || got == first) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s with %q in it: got %q, %v", file, c.wrong, got, err)
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.read(dir); err == nil || !strings.HasPrefix(err.Error(), c.unreadable) {
			t.Errorf("%s that is a folder: %v", file, err)
		}
	}
}

// resetKey is ResetKey with the key as text.
func resetKey(dir string) (string, error) {
	key, err := ResetKey(dir)
	return string(key[:]), err
}

func TestASetupCodeIsRemovedOnce(t *testing.T) {
	dir := t.TempDir()
	if _, err := SetupCode(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := RemoveSetupCode(dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, SetupCodeFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there yet: %v", err)
	}
}

func TestARunningRelayIsFoundByItsFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadRuntime(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where none runs: %v", err)
	}
	want := Runtime{ConsoleURL: "http://127.0.0.1:1", TokenFile: "token", PID: 7, StartedAt: time.Unix(1000, 0).UTC()}
	remove, err := WriteRuntime(dir, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRuntime(dir); got != want || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	remove()
	if _, err := ReadRuntime(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("when it has ended: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, RuntimeFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRuntime(dir); err == nil || !strings.HasPrefix(err.Error(), "read "+RuntimeFile+": ") {
		t.Errorf("a file that is cut off: %v", err)
	}
}

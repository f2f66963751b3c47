package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var errPower = errors.New("the power went")

// cut lets a number of steps through and fails every one after; a write that is
// cut leaves half of its bytes, and nothing is cleaned up.
type cut struct {
	steps int
	real  system
}

func (c *cut) step() error {
	if c.steps == 0 {
		return errPower
	}
	c.steps--
	return nil
}

func (c *cut) CreateTemp(dir, pattern string) (File, error) {
	if err := c.step(); err != nil {
		return nil, err
	}
	f, err := c.real.CreateTemp(dir, pattern)
	return &cutFile{File: f, cut: c}, err
}

func (c *cut) Rename(from, to string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.real.Rename(from, to)
}

func (c *cut) Remove(path string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.real.Remove(path)
}

func (c *cut) SyncDir(dir string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.real.SyncDir(dir)
}

type cutFile struct {
	File
	cut *cut
}

func (f *cutFile) Write(b []byte) (int, error) {
	if err := f.cut.step(); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *cutFile) Chmod(mode fs.FileMode) error {
	if err := f.cut.step(); err != nil {
		return err
	}
	return f.File.Chmod(mode)
}

func (f *cutFile) Sync() error {
	if err := f.cut.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *cutFile) Close() error {
	if err := f.cut.step(); err != nil {
		f.File.Close()
		return err
	}
	return f.File.Close()
}

func TestCutAtEveryStepLeavesOldOrNew(t *testing.T) {
	const steps = 7
	for n := range steps + 1 {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := Write(path, []byte("old content"), 0o600); err != nil {
			t.Fatal(err)
		}
		fsys := &cut{steps: n}
		err := WriteTo(fsys, path, []byte("new content, longer"), 0o600)
		got, readErr := os.ReadFile(path)
		if readErr != nil {
			t.Fatalf("after %d steps: %v", n, readErr)
		}
		want := "old content"
		if err == nil {
			want = "new content, longer"
		}
		if string(got) != want {
			t.Errorf("after %d steps and error %v: got %q, want %q", n, err, got, want)
		}
		// Create, chmod, write, sync, close, rename: from the sixth on it is replaced.
		if (err == nil) != (n >= 6) {
			t.Errorf("after %d steps: got error %v", n, err)
		}
		if err != nil && !errors.Is(err, errPower) {
			t.Errorf("after %d steps: got error %v, want it to tell the cause", n, err)
		}
	}
}

func TestWriteKeepsSecretsFromOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are access lists there")
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("open to all"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("got permissions %o, want 600", got)
	}
}

func TestFailedWriteLeavesNoLitter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "folder")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("got %d entries left, want the folder alone", len(entries))
	}
}

func TestSweepRemovesWhatCutWritesHaveLeft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a[1].json")
	if err := Write(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteTo(&cut{steps: 3}, path, []byte("a secret"), 0o600); err == nil { // created, changed, half written
		t.Fatal("the write was not cut")
	}
	others := []string{".a[1].json", ".a[1].json.tmp.bak", "b.json", ".b.json.1.tmp"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1+len(others) {
		t.Errorf("got %v, want the file and what is not of it", entries)
	}
}

func TestMissingFolderIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	path := filepath.Join(dir, "x.json")
	err := Write(path, nil, 0o600)
	if want := "replace " + path + ": open " + dir + ": "; !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLogTurnsAndKeepsTheNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "adit.log")
	opened := 0
	f, err := Open(path, 20, 2, func(file *os.File) {
		if file != nil {
			opened++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		if _, err := fmt.Fprintf(f, "line %03d\n", i); err != nil { // 9 bytes: two a file
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		path: "line 008\n", path + ".1": "line 006\nline 007\n", path + ".2": "line 004\nline 005\n",
	} {
		if got := read(t, file); got != want {
			t.Errorf("%s: got %q, want %q", filepath.Base(file), got, want)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 3 {
		t.Errorf("got %v, error %v, want three files", entries, err)
	}
	if opened != 5 {
		t.Errorf("told of %d files, want 5", opened)
	}
}

// Windows renames no file that anybody has open.
func TestWhoHoldsTheLogTooLetsGoBeforeItTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adit.log")
	var held *os.File
	letGo := 0
	f, err := Open(path, 20, 1, func(file *os.File) {
		if file == nil {
			letGo++
			if _, err := os.Stat(path + ".1"); err == nil {
				t.Error("the log was renamed while it was held")
			}
		}
		held = file
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprint(f, "line one\nline two\n")
	if letGo != 0 || held == nil {
		t.Fatalf("let go %d times before there was a reason", letGo)
	}
	fmt.Fprint(f, "line three\n")
	if letGo != 1 || held == nil || read(t, path+".1") != "line one\nline two\n" {
		t.Errorf("let go %d times, want once before the turn", letGo)
	}
}

func TestLogGoesOnWhereItEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adit.log")
	for range 3 {
		f, err := Open(path, 20, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, "line one\n")
		f.Close()
	}
	if got, old := read(t, path), read(t, path+".1"); got != "line one\n" || old != "line one\nline one\n" {
		t.Errorf("got %q and before it %q", got, old)
	}
}

func TestLogOfOneFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adit.log")
	f, err := Open(path, 20, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 5 {
		fmt.Fprint(f, "line one\n")
	}
	fmt.Fprint(f, strings.Repeat("x", 100)+"\n")
	if got := read(t, path); got != strings.Repeat("x", 100)+"\n" {
		t.Errorf("got %q, want the long line alone", got)
	}
}

// TestLogStaysBoundedWhereItCannotBeRenamed has a folder in the way.
func TestLogStaysBoundedWhereItCannotBeRenamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adit.log")
	if err := os.MkdirAll(filepath.Join(path+".1", "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, 20, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 3 {
		if _, err := fmt.Fprint(f, "line one\n"); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, path); got != "line one\n" {
		t.Errorf("got %q, want the newest line", got)
	}
}

func TestLogTakesLinesFromMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adit.log")
	f, err := Open(path, 1000, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 100 {
				fmt.Fprint(f, "a line of the log\n")
			}
		})
	}
	wg.Wait()
	f.Close()
	files, _ := filepath.Glob(path + "*")
	lines := 0
	for _, file := range files {
		for line := range strings.Lines(read(t, file)) {
			if line != "a line of the log\n" {
				t.Fatalf("got line %q", line)
			}
			lines++
		}
	}
	if lines != 1000 {
		t.Errorf("got %d lines, want 1000", lines)
	}
}

func TestBoundEmptiesWhatIsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adit.err")
	if err := Bound(path, 5); err != nil {
		t.Errorf("no file: %v", err)
	}
	for _, tt := range []struct{ text, want string }{{"12345", "12345"}, {"123456", ""}} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Bound(path, 5); err != nil || read(t, path) != tt.want {
			t.Errorf("%q: got %q, error %v", tt.text, read(t, path), err)
		}
	}
}

func TestLogThatCannotBeOpenedLeavesTheOlderOnes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adit.log")
	f, err := Open(path, 20, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 8 {
		if _, err := fmt.Fprintf(f, "line %03d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	older := read(t, path+".1")
	// As after a turn that found no place for a new file: now a folder is there.
	f.file.Close()
	f.file = nil
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := fmt.Fprintln(f, "lost"); err == nil {
			t.Error("got no error from a log that cannot be opened")
		}
	}
	if got := read(t, path+".1"); got != older {
		t.Errorf("the newest of the older files has %q, want %q", got, older)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, "again"); err != nil || read(t, path) != "again\n" {
		t.Errorf("got error %v, and %q in the log", err, read(t, path))
	}
}

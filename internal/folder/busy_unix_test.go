//go:build !windows

package folder

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// withFiles calls do while this process may have no more files open than those with
// a number below most.
func withFiles(t *testing.T, most uint64, do func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = most
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// nextFile is the number that the next file to be opened has.
func nextFile(t *testing.T) uint64 {
	t.Helper()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return uint64(f.Fd())
}

// TestTooManyOpenFilesIsNotNothing: a visitor, or a cache, must not take a file for
// gone because it cannot be opened now.
func TestTooManyOpenFilesIsNotNothing(t *testing.T) {
	f := shared(t, Options{})
	for _, target := range []string{"/a.txt", "/", "/deep/", "/site/", "/backup~1", "/none"} {
		for spare := range uint64(4) { // the folder, and then what is in it
			var resp *http.Response
			withFiles(t, nextFile(t)+spare, func() { resp = ask(f, "GET", target) })
			body := bodyOf(t, resp)
			switch {
			case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
			case spare == 0 || resp.StatusCode >= 400 && target != "/none":
				t.Errorf("%s with %d files to open: got %d %q, want 503", target, spare, resp.StatusCode, body)
			case target == "/deep/" && !strings.Contains(body, "9.txt"):
				t.Errorf("with %d files to open: the list of %s has not all:\n%s", spare, target, body)
			}
		}
	}
}

func TestBrokenDiskIsNotNothing(t *testing.T) {
	for _, no := range []syscall.Errno{syscall.EIO, syscall.ESTALE} {
		err := fmt.Errorf("list: %w", &fs.PathError{Op: "readdirent", Path: "a", Err: no})
		if !broken(err) || busy(err) {
			t.Errorf("%v: got busy %t, broken %t, want broken alone", no, busy(err), broken(err))
		}
	}
	for _, no := range []syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG} {
		if err := (&fs.PathError{Err: no}); broken(err) || busy(err) {
			t.Errorf("%v: got busy %t, broken %t, want neither", no, busy(err), broken(err))
		}
	}
}

// TestLinksThatLeadNowhereAreNothing, and not an error of this machine.
func TestLinksThatLeadNowhereAreNothing(t *testing.T) {
	f := shared(t, Options{})
	link(t, f, "round", "round")
	link(t, f, "/etc", "abs")
	link(t, f, "gone", "dangling")
	if err := syscall.Mkfifo(filepath.Join(f.dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	for _, target := range []string{"/round", "/round/", "/abs", "/abs/passwd", "/dangling", "/pipe", "/" + strings.Repeat("x", 300)} {
		if resp := ask(f, "GET", target); resp.StatusCode != 404 {
			t.Errorf("%s: got %d, want 404", target, resp.StatusCode)
		}
	}
}

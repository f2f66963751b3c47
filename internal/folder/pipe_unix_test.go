//go:build unix

package folder

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipeIsNoFile: to open a pipe lasts until somebody writes to it.
func TestPipeIsNoFile(t *testing.T) {
	f := shared(t, Options{})
	for _, name := range []string{"pipe", "empty/index.html"} {
		if err := syscall.Mkfifo(filepath.Join(f.dir, name), 0o600); err != nil {
			t.Skip("no pipe can be made:", err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp := ask(f, "GET", "/pipe"); resp.StatusCode != 404 {
			t.Errorf("a pipe: got %d, want 404", resp.StatusCode)
		}
		if resp := ask(f, "GET", "/empty/"); resp.StatusCode != 200 {
			t.Errorf("a folder whose index.html is a pipe: got %d, want its list", resp.StatusCode)
		}
		if body := bodyOf(t, ask(f, "GET", "/")); strings.Contains(body, `"./pipe"`) {
			t.Error("the list has a pipe")
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a pipe holds visitors up")
	}
}

//go:build !windows

package machine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	releases "adit/internal/update"
)

// TestAProgramThatDoesNotRunIsNotLeftInPlace, also where no service runs it: nobody
// could install another with it.
func TestAProgramThatDoesNotRunIsNotLeftInPlace(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "adit")
	const old = "#!/bin/sh\nexit 0\n"
	if err := os.WriteFile(exe, []byte(old), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"\x7fELF of another machine", "#!/bin/sh\necho no such library; exit 127\n"} {
		err := releases.Replace(t.Context(), exe, []byte(program), func(ctx context.Context) error { return runs(ctx, exe) })
		if err == nil || !strings.Contains(err.Error(), "the old program is back") {
			t.Errorf("%q: got error %v, want that the old program is back", program, err)
		}
		if got, err := os.ReadFile(exe); err != nil || string(got) != old {
			t.Errorf("%q: got %q, %v in its place", program, got, err)
		}
	}
	if err := releases.Replace(t.Context(), exe, []byte("#!/bin/sh\n[ $1 = version ]\n"), func(ctx context.Context) error { return runs(ctx, exe) }); err != nil {
		t.Errorf("a program that runs: got error %v", err)
	}
}

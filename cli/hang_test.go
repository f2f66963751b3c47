package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/cli/command"
)

// A daemon that hangs is not one that does not run: to start another would not help.
func TestDaemonThatHangsIsToldFromNone(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts: the system does, and nothing answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "runtime.json"), []byte(`{"connect_addr":"`+ln.Addr().String()+`","pid":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ADIT_STATE_DIR", dir)
	t.Setenv("ADIT_CONFIG_DIR", dir)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	env, _, errs := testEnv("")
	if code := Run(ctx, env, []string{"status"}); code != command.ExitFailed {
		t.Errorf("got exit code %d, want %d", code, command.ExitFailed)
	}
	if got := errs.String(); !strings.Contains(got, "does not answer") || strings.Contains(got, "not running") {
		t.Errorf("got %q, want that something is there and does not answer", got)
	}
}

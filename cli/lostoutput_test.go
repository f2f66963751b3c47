package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"adit/cli/command"
)

// noRoom is an output on a disk that is full.
type noRoom struct{ err error }

func (n noRoom) Write([]byte) (int, error) { return 0, n.err }

// TestLostOutputIsAFailure holds that nobody takes an empty file for an answer.
func TestLostOutputIsAFailure(t *testing.T) {
	full := errors.New("no space left on device")
	for _, args := range []string{
		"help", "help tunnel", "status --help", "--version", "version", "status", "requests show r_1 --curl", "completion bash", "logout --json",
	} {
		newFakeDaemon(t)
		env, _, errs := testEnv("")
		env.Out = noRoom{full}
		code := Run(t.Context(), env, strings.Fields(args))
		if code != command.ExitFailed || !strings.Contains(errs.String(), full.Error()) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("adit %s: got exit code %d and %q, want 1 and one line that says why", args, code, errs)
		}
	}
	// Whoever reads has gone, as in adit help | head: there is nobody to tell.
	env, _, errs := testEnv("")
	env.Out = noRoom{syscall.EPIPE}
	if code := Run(t.Context(), env, []string{"help"}); code != command.ExitDone || errs.Len() > 0 {
		t.Errorf("nobody reads: got exit code %d and %q", code, errs)
	}
}

package cli

import (
	"context"
	"strings"
	"testing"

	"adit/cli/command"
)

// An address that can be none is a wrong use, as every other flag's value is.
func TestStartRefusesAnAddressThatIsNone(t *testing.T) {
	for _, addr := range []string{"foo", "127.0.0.1:99999", "127.0.0.1:", "::1"} {
		env, _, errs := testEnv("")
		env.Daemon = func(context.Context, string) error {
			t.Errorf("%s: the daemon was run", addr)
			return nil
		}
		if code := Run(t.Context(), env, []string{"start", "--http_listen", addr}); code != command.ExitUsage || !strings.Contains(errs.String(), "--http_listen must be an address and a port") {
			t.Errorf("%s: got exit code %d and %q", addr, code, errs)
		}
	}
}

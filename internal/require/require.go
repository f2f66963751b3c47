// Package require decides what happens to a test whose tool is missing: a plain run skips it and
// gives the reason, and a run with ADIT_REQUIRE=1 fails it.
package require

import (
	"os"
	"os/exec"
	"testing"
)

// Strict reports whether a missing tool is a failure.
func Strict() bool { return os.Getenv("ADIT_REQUIRE") == "1" }

// Missing ends the test: as skipped in a plain run, as failed in a strict one.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if Strict() {
		tb.Fatalf("required here: "+format, args...)
	}
	tb.Skipf("not here: "+format, args...)
}

// Tool returns the path of the first of names that is installed.
func Tool(tb testing.TB, names ...string) string {
	tb.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(tb, "none of the programs %v is installed", names)
	return ""
}

// Opted ends a test that demands too much of a machine for a plain run.
func Opted(tb testing.TB) {
	tb.Helper()
	if !Strict() {
		tb.Skip("set ADIT_REQUIRE=1 to run it")
	}
}

// Root ends a test that needs root on Linux, for namespaces and services, if it runs without.
func Root(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Missing(tb, "root is needed, the user id is %d", os.Geteuid())
	}
}

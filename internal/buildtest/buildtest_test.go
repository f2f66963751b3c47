package buildtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// TestAChangedProgramIsTestedAnew has go test run a test of a small module that builds a
// program, before and after a change of the program alone.
func TestAChangedProgramIsTestedAnew(t *testing.T) {
	goTool := require.Tool(t, "go")
	own, err := os.ReadFile("buildtest.go")
	if err != nil {
		t.Fatal(err)
	}
	module := t.TempDir()
	old := time.Now().Add(-time.Hour) // go test keeps no result of files that have just changed
	write := func(name, text string, changed time.Time) {
		t.Helper()
		path := filepath.Join(module, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module small\n", old)
	write("main.go", "package main\n\nfunc main() { println(1) }\n", old)
	write("buildtest/buildtest.go", string(own), old)
	write("tested/tested_test.go", `package tested

import (
	"path/filepath"
	"testing"

	"small/buildtest"
)

func TestProgram(t *testing.T) {
	if err := buildtest.Program(filepath.Join(t.TempDir(), "program"), "small"); err != nil {
		t.Fatal(err)
	}
}
`, old)
	cached := func() bool {
		t.Helper()
		cmd := exec.Command(goTool, "test", "./tested")
		cmd.Dir = module
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+buildFlags())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go test: %v\n%s", err, out)
		}
		return strings.Contains(string(out), "(cached)")
	}
	cached()
	if !cached() {
		t.Error("a program that is as it was is tested again")
	}
	write("main.go", "package main\n\nfunc main() { println(2) }\n", old.Add(time.Minute))
	if cached() {
		t.Error("the result of the program before its change is repeated")
	}
}

func TestWatchLooksIntoTheModuleAlone(t *testing.T) {
	folders, err := Watch()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(mustWd(t)))
	for _, name := range []string{"", "tunnel/relay", "frontend/dist", "internal/buildtest"} {
		if !slices.Contains(folders, filepath.Join(root, filepath.FromSlash(name))) {
			t.Errorf("%q is not among the %d folders", name, len(folders))
		}
	}
	for _, f := range folders {
		if base := filepath.Base(f); f != root && (base == "node_modules" || base == ".git") {
			t.Errorf("it looks into %s", f)
		}
	}
}

// buildFlags are those of GOFLAGS that say how to build, so that what is compiled already
// is found; with some of go test, as -shuffle, no result is kept.
func buildFlags() string {
	return strings.Join(slices.DeleteFunc(strings.Fields(os.Getenv("GOFLAGS")), func(flag string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		return !slices.Contains([]string{"trimpath", "buildvcs", "ldflags", "gcflags"}, name)
	}), " ")
}

func mustWd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

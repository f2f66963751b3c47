package desktoptest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/buildtest"
	"adit/internal/require"
)

// program is the package that the installers under test are made of: adit
// itself, unless ADIT_TEST_PROGRAM names one that is quicker to build.
var program = cmp.Or(os.Getenv("ADIT_TEST_PROGRAM"), ".")

// kept is a folder that outlives a run: what was packed for the last one is not
// made again. It is for work on the tests themselves, and empty in CI.
var kept = os.Getenv("ADIT_DESKTOP_DIR")

// shared is a folder that outlives one test, for what takes long to make of the sources.
var shared = sync.OnceValues(func() (string, error) {
	if _, err := buildtest.Watch(); err != nil {
		return "", err
	}
	if kept != "" {
		return kept, os.MkdirAll(kept, 0o755)
	}
	return os.MkdirTemp("", "adit-desktop-")
})

func TestMain(m *testing.M) {
	if os.Getenv(envOrigin) != "" {
		fmt.Fprintln(os.Stderr, serveOrigin())
		os.Exit(1)
	}
	code := m.Run()
	endWindows()
	if dir, err := shared(); err == nil && kept == "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// The versions under test: all that there is of the first, and of the second
// what the first is upgraded to.
const (
	firstVersion  = "0.1.0"
	secondVersion = "0.2.0"
)

// patience is how long one program may take beside all the others; on a machine
// that does nothing else most are done in seconds.
const patience = 4 * time.Minute

// results makes a version's packages and returns their folder. All tests take
// them from there, because they take long to make.
func results(t *testing.T, version string) string {
	t.Helper()
	for _, tool := range []string{"wixl", "makensis"} {
		require.Tool(t, tool)
	}
	if version == firstVersion {
		return pack(t, version, "-only", kinds, pace)
	}
	return pack(t, version, "-only", "deb,rpm,apk,archlinux,nsis,msi", "-arch", "amd64", pace)
}

var packed sync.Map // of func() error, by the arguments

// pack makes what args ask for, once, and returns the folder it is in.
func pack(t *testing.T, version string, args ...string) string {
	t.Helper()
	return packIn(t, nil, version, args...)
}

// packIn is pack with more of an environment.
func packIn(t *testing.T, env []string, version string, args ...string) string {
	t.Helper()
	dir, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	key := version + " " + strings.Join(args, " ")
	out := filepath.Join(dir, strings.NewReplacer(" ", "_", ",", "_", "/", "_").Replace(key))
	if _, err := os.Stat(filepath.Join(out, "SHA256SUMS")); err == nil && kept != "" {
		return out
	}
	once, _ := packed.LoadOrStore(key, sync.OnceValue(func() error {
		cmd := exec.Command("go", append([]string{"run", "./build/pack", "-version", version, "-out", out, "-program", program}, args...)...)
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), env...)
		said, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("pack %s: %w\n%s", key, err, said)
		}
		return nil
	}))
	begin := time.Now()
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
	t.Logf("pack %s: %.1f s", key, time.Since(begin).Seconds())
	return out
}

// command is output for the time of a test.
func command(t *testing.T, limit time.Duration, env []string, name string, args ...string) (string, error) {
	t.Helper()
	return output(limit, env, name, args...)
}

// output runs a program to its end and returns what it printed.
func output(limit time.Duration, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	// A file and no pipe: what the program leaves running in the background
	// would keep a pipe open.
	out, err := os.CreateTemp("", "adit-said-")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("not ended after %s: %w", limit, err)
	}
	said, readErr := os.ReadFile(out.Name())
	if readErr != nil {
		return "", readErr
	}
	return strings.TrimSpace(string(said)), err
}

// must is command whose failure ends the test.
func must(t *testing.T, limit time.Duration, env []string, name string, args ...string) string {
	t.Helper()
	out, err := command(t, limit, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// until waits for a condition, and says what was waited for if it never comes.
func until(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// one returns the only file that matches.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s in %s: got %v, want one file", pattern, dir, files)
	}
	return files[0]
}

// released returns the program of a version, as its Debian package brings it.
func released(t *testing.T, version string) string {
	t.Helper()
	require.Tool(t, "dpkg-deb")
	root := t.TempDir()
	must(t, patience, nil, "dpkg-deb", "-x", deb(t, version), root)
	return filepath.Join(root, "usr/bin/adit")
}

// deb returns a version's Debian package for this kind of processor.
func deb(t *testing.T, version string) string {
	t.Helper()
	return one(t, results(t, version), "*-amd64.deb")
}

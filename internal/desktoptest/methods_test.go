package desktoptest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"adit/internal/require"
)

// The names of functions are in a program without symbols, too, for stack
// traces. byName are those that call a method by its name or number: where one is,
// the linker could leave out no exported method. always is in every program.
var (
	byName = []string{"reflect.Value.MethodByName\x00", "reflect.Value.Method\x00"}
	always = "reflect.Value.Set\x00"
)

// TestProgramsHaveOnlyWhatTheyUse reads the programs that are installed. On
// Linux the tray's library keeps all methods: docs/decisions/0012 tells why.
func TestProgramsHaveOnlyWhatTheyUse(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	require.Tool(t, "bsdtar")
	dir := results(t, firstVersion)
	for _, arch := range []string{"amd64", "arm64"} {
		for _, pattern := range []string{"*-windows-" + arch + ".zip", "*-darwin-" + arch + ".tar.gz"} {
			file := one(t, dir, pattern)
			data := programIn(t, file)
			if !bytes.Contains(data, []byte(always)) {
				t.Errorf("%s: no names of functions in a program of %d bytes", filepath.Base(file), len(data))
			}
			for _, name := range byName {
				if bytes.Contains(data, []byte(name)) {
					t.Errorf("%s: %q is in the program, and so every exported method is", filepath.Base(file), name)
				}
			}
		}
	}
}

// programIn returns the program in an archive of either kind.
func programIn(t *testing.T, archive string) []byte {
	t.Helper()
	dir := t.TempDir()
	must(t, patience, nil, "bsdtar", "-C", dir, "--strip-components", "1", "-xf", archive)
	for _, name := range []string{"adit.exe", "adit"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return data
		}
	}
	t.Fatalf("%s has no program", archive)
	return nil
}

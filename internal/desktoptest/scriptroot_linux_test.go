package desktoptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/require"
)

// scriptRoot is a root of its own for a package manager: a shell for the packages'
// scripts, and programs that note what the scripts ask them for.
type scriptRoot struct {
	t   *testing.T
	dir string
}

// newScriptRoot makes one whose /bin/sh is this machine's program of that name.
func newScriptRoot(t *testing.T, shell string) scriptRoot {
	t.Helper()
	require.Root(t)
	require.Tool(t, "ldd")
	r := scriptRoot{t: t, dir: t.TempDir()}
	for from, name := range map[string]string{shell: "sh", "rm": "rm", "cat": "cat"} {
		file := require.Tool(t, from)
		r.copy(file, "/bin/"+name)
		for field := range strings.FieldsSeq(must(t, patience, nil, "ldd", file)) {
			if strings.HasPrefix(field, "/") {
				r.copy(field, field)
			}
		}
	}
	r.write("/dev/null", "", 0o666)
	return r
}

// withSystemd has systemd run, and the service where /active is.
func (r scriptRoot) withSystemd() {
	r.t.Helper()
	r.write("/bin/systemctl", "#!/bin/sh\necho \"$*\" >>/asked\ncase \"$1\" in is-active) [ -e /active ] ;; esac\n", 0o755)
	r.write("/run/systemd/system/.keep", "", 0o644)
}

func (r scriptRoot) write(name, text string, mode os.FileMode) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

func (r scriptRoot) copy(from, to string) {
	r.t.Helper()
	r.write(to, string(read(r.t, from)), 0o755)
}

func (r scriptRoot) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r scriptRoot) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, name))
	return err == nil
}

func (r scriptRoot) text(name string) string {
	r.t.Helper()
	return string(read(r.t, filepath.Join(r.dir, name)))
}

// run runs a program, and returns what it printed and what the root's programs
// were asked for.
func (r scriptRoot) run(name string, args ...string) (said, asked string) {
	r.t.Helper()
	said = must(r.t, patience, nil, name, args...)
	if r.exists("/asked") {
		asked = strings.ReplaceAll(strings.TrimSpace(r.text("/asked")), "\n", ", ")
		r.remove("/asked")
	}
	return said, asked
}

// wantAsked holds what the scripts asked for.
func (r scriptRoot) wantAsked(what, got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: the scripts asked for %q, want %q", what, got, want)
	}
}

// hint is what a package's scripts say to newcomers.
const hint = "adit login TOKEN"

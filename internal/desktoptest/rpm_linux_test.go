package desktoptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// rpmRoot is a root of its own for rpm: a shell for the packages' scripts, and a
// systemctl that notes what it is asked for.
type rpmRoot struct {
	t   *testing.T
	dir string
}

func newRPMRoot(t *testing.T) rpmRoot {
	t.Helper()
	r := rpmRoot{t: t, dir: t.TempDir()}
	for _, name := range []string{"sh", "rm"} {
		file := require.Tool(t, name)
		r.copy(file, "/bin/"+name)
		for field := range strings.FieldsSeq(must(t, time.Minute, nil, "ldd", file)) {
			if strings.HasPrefix(field, "/") {
				r.copy(field, field)
			}
		}
	}
	r.write("/bin/systemctl", "#!/bin/sh\necho \"$*\" >>/asked\ncase \"$1\" in is-active) [ -e /active ] ;; esac\n", 0o755)
	r.write("/dev/null", "", 0o666)
	if err := os.MkdirAll(filepath.Join(r.dir, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r rpmRoot) write(name, text string, mode os.FileMode) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

func (r rpmRoot) copy(from, to string) {
	r.t.Helper()
	r.write(to, string(read(r.t, from)), 0o755)
}

// rpm runs rpm in the root, and returns what it printed and what systemctl was
// asked for. What the packages depend on is not looked for: no package is there.
func (r rpmRoot) rpm(args ...string) (said, asked string) {
	r.t.Helper()
	said = must(r.t, 2*time.Minute, nil, "rpm", append([]string{"--root", r.dir, "--dbpath", "/var/lib/rpm", "--nosignature"}, args...)...)
	notes := filepath.Join(r.dir, "asked")
	if text, err := os.ReadFile(notes); err == nil {
		asked = strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", ")
		if err := os.Remove(notes); err != nil {
			r.t.Fatal(err)
		}
	}
	return said, asked
}

func (r rpmRoot) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, name))
	return err == nil
}

func TestRPMIsInstalledUpgradedAndErased(t *testing.T) {
	require.Opted(t)
	require.Root(t)
	require.Tool(t, "rpm")
	require.Tool(t, "ldd")
	first, second := one(t, results(t, firstVersion), "*-amd64.rpm"), one(t, results(t, secondVersion), "*-amd64.rpm")
	r := newRPMRoot(t)
	const hint = "adit login TOKEN"
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: systemctl was asked for %q, want %q", what, got, want)
		}
	}

	said, asked := r.rpm("--nodeps", "-i", first)
	want("installed", asked, "daemon-reload, enable adit.service, restart adit.service")
	if !strings.Contains(said, hint) {
		t.Errorf("installed: got %q, want what to do next", said)
	}
	r.rpm("--nodeps", "-V", "adit") // all is as the package says: sizes, owners, modes, sums
	for _, name := range []string{"/usr/share/zsh/site-functions/_adit", "/usr/share/man/man1/adit.1.gz", "/usr/lib/systemd/system/adit.service"} {
		if !r.exists(name) {
			t.Errorf("installed: %s is not there", name)
		}
	}
	if r.exists("/usr/share/zsh/vendor-completions") {
		t.Error("installed: Debian's folder for zsh's completions is there, which zsh does not look into elsewhere")
	}

	const mine = "# an administrator's change\n"
	r.write("/etc/xdg/autostart/adit-tray.desktop", mine, 0o644)
	r.write("/var/lib/adit/auth.json", "{}", 0o600)
	r.write("/active", "", 0o644)
	said, asked = r.rpm("--nodeps", "-U", second)
	want("upgraded while it runs", asked, "daemon-reload, is-active --quiet adit.service, restart adit.service, daemon-reload")
	if strings.Contains(said, hint) {
		t.Errorf("upgraded: got %q, want nothing for newcomers", said)
	}
	if version, _ := r.rpm("-q", "adit"); !strings.HasPrefix(version, "adit-"+secondVersion) {
		t.Errorf("upgraded: got %s, want version %s", version, secondVersion)
	}
	if text := read(t, filepath.Join(r.dir, "etc/xdg/autostart/adit-tray.desktop")); string(text) != mine {
		t.Errorf("upgraded: the administrator's file is now %q", text)
	}

	if err := os.Remove(filepath.Join(r.dir, "active")); err != nil {
		t.Fatal(err)
	}
	_, asked = r.rpm("--nodeps", "-U", "--replacepkgs", second)
	want("installed anew while it is stopped", asked, "daemon-reload, is-active --quiet adit.service, daemon-reload")

	_, asked = r.rpm("--nodeps", "-e", "adit")
	want("erased", asked, "stop adit.service, disable adit.service, daemon-reload")
	if r.exists("/usr/bin/adit") || r.exists("/usr/lib/systemd/system/adit.service") {
		t.Error("erased: the program or its unit is still there")
	}
	if !r.exists("/var/lib/adit/auth.json") {
		t.Error("erased: the state went with the package")
	}
}

package desktoptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/require"
)

// TestArchPackageIsInstalledUpgradedAndRemoved has Arch's own package manager do it.
func TestArchPackageIsInstalledUpgradedAndRemoved(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	require.Tool(t, "pacman")
	first, second := one(t, results(t, firstVersion), "*-amd64.pkg.tar.zst"), one(t, results(t, secondVersion), "*-amd64.pkg.tar.zst")
	r := newScriptRoot(t, "bash") // as on Arch
	r.withSystemd()
	r.copy(filepath.Join(r.dir, "bin/sh"), "/usr/bin/bash")
	r.write("/etc/pacman.conf", "[options]\nArchitecture = x86_64\nSigLevel = Never\n", 0o644)
	if err := os.MkdirAll(filepath.Join(r.dir, "var/lib/pacman"), 0o755); err != nil {
		t.Fatal(err)
	}
	pacman := func(args ...string) (said, asked string) {
		t.Helper()
		said, asked = r.run("pacman", append([]string{
			"--root", r.dir, "--config", filepath.Join(r.dir, "etc/pacman.conf"), "--dbpath", filepath.Join(r.dir, "var/lib/pacman"),
			"--hookdir", filepath.Join(r.dir, "hooks"), "--logfile", filepath.Join(r.dir, "pacman.log"), "--noconfirm",
		}, args...)...)
		// A script that cannot run does not end pacman with an error.
		if strings.Contains(said, "error:") || strings.Contains(said, "failed") {
			t.Errorf("pacman %s: %s", args, said)
		}
		return said, asked
	}

	said, asked := pacman("-U", first)
	r.wantAsked("installed", asked, "daemon-reload, enable adit.service, restart adit.service")
	if !strings.Contains(said, hint) {
		t.Errorf("installed: got %q, want what to do next", said)
	}
	if said, _ := pacman("-Qkk", "adit"); !strings.Contains(said, " 0 altered files") { // sizes, owners, modes
		t.Errorf("installed: %s", said)
	}
	if said, _ := pacman("-Qi", "adit"); !strings.Contains(said, ": publish services on this machine at public URLs\n") {
		t.Errorf("installed: want a description of one line: %s", said)
	}
	for _, name := range []string{"/usr/bin/adit", "/usr/share/zsh/site-functions/_adit", "/usr/share/man/man1/adit.1.gz", "/usr/lib/systemd/system/adit.service"} {
		if !r.exists(name) {
			t.Errorf("installed: %s is not there", name)
		}
	}
	if r.exists("/etc/init.d") {
		t.Error("installed: there is a script for OpenRC")
	}

	const mine = "# an administrator's change\n"
	r.write("/etc/xdg/autostart/adit-tray.desktop", mine, 0o644)
	r.write("/var/lib/adit/auth.json", "{}", 0o600)
	r.write("/active", "", 0o644)
	said, asked = pacman("-U", second)
	r.wantAsked("upgraded while it runs", asked, "daemon-reload, is-active --quiet adit.service, restart adit.service")
	if strings.Contains(said, hint) {
		t.Errorf("upgraded: got %q, want nothing for newcomers", said)
	}
	if version, _ := pacman("-Q", "adit"); version != "adit "+secondVersion+"-1" {
		t.Errorf("upgraded: got %s, want version %s", version, secondVersion)
	}
	if text := r.text("/etc/xdg/autostart/adit-tray.desktop"); text != mine {
		t.Errorf("upgraded: the administrator's file is now %q", text)
	}
	r.remove("/active")
	_, asked = pacman("-U", second)
	r.wantAsked("installed anew while it is stopped", asked, "daemon-reload, is-active --quiet adit.service")

	_, asked = pacman("-R", "adit")
	r.wantAsked("removed", asked, "stop adit.service, disable adit.service, daemon-reload")
	if r.exists("/usr/bin/adit") || r.exists("/usr/lib/systemd/system/adit.service") {
		t.Error("removed: the program or its unit is still there")
	}
	if text := r.text("/etc/xdg/autostart/adit-tray.desktop.pacsave"); text != mine {
		t.Errorf("removed: the administrator's file is now %q", text)
	}
	if !r.exists("/var/lib/adit/auth.json") {
		t.Error("removed: the state went with the package")
	}
}

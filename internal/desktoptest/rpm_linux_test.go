package desktoptest

import (
	"strings"
	"testing"

	"adit/internal/require"
)

func TestRPMIsInstalledUpgradedAndErased(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	require.Tool(t, "rpm")
	first, second := one(t, results(t, firstVersion), "*-amd64.rpm"), one(t, results(t, secondVersion), "*-amd64.rpm")
	r := newScriptRoot(t, "sh")
	r.withSystemd()
	// What the packages depend on is not looked for: no package is there.
	rpm := func(args ...string) (said, asked string) {
		t.Helper()
		return r.run("rpm", append([]string{"--root", r.dir, "--dbpath", "/var/lib/rpm", "--nosignature"}, args...)...)
	}

	said, asked := rpm("--nodeps", "-i", first)
	r.wantAsked("installed", asked, "daemon-reload, enable adit.service, restart adit.service")
	if !strings.Contains(said, hint) {
		t.Errorf("installed: got %q, want what to do next", said)
	}
	rpm("--nodeps", "-V", "adit") // all is as the package says: sizes, owners, modes, sums
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
	said, asked = rpm("--nodeps", "-U", second)
	r.wantAsked("upgraded while it runs", asked, "daemon-reload, is-active --quiet adit.service, restart adit.service, daemon-reload")
	if strings.Contains(said, hint) {
		t.Errorf("upgraded: got %q, want nothing for newcomers", said)
	}
	if version, _ := rpm("-q", "adit"); !strings.HasPrefix(version, "adit-"+secondVersion) {
		t.Errorf("upgraded: got %s, want version %s", version, secondVersion)
	}
	if text := r.text("/etc/xdg/autostart/adit-tray.desktop"); text != mine {
		t.Errorf("upgraded: the administrator's file is now %q", text)
	}

	r.remove("/active")
	const own = "/etc/systemd/system/adit.service"
	for program, hides := range map[string]bool{"/usr/local/bin/adit": true, "/usr/bin/adit": false} {
		r.write(own, "[Service]\nExecStart="+program+" start\n", 0o644)
		if said, _ := rpm("--nodeps", "-U", "--replacepkgs", second); strings.Contains(said, own+" hides") != hides {
			t.Errorf("a unit for %s is there: got %q, want it said to hide the package's: %t", program, said, hides)
		}
	}
	r.remove(own)
	_, asked = rpm("--nodeps", "-U", "--replacepkgs", second)
	r.wantAsked("installed anew while it is stopped", asked, "daemon-reload, is-active --quiet adit.service, daemon-reload")

	_, asked = rpm("--nodeps", "-e", "adit")
	r.wantAsked("erased", asked, "stop adit.service, disable adit.service, daemon-reload")
	if r.exists("/usr/bin/adit") || r.exists("/usr/lib/systemd/system/adit.service") {
		t.Error("erased: the program or its unit is still there")
	}
	if !r.exists("/var/lib/adit/auth.json") {
		t.Error("erased: the state went with the package")
	}
}

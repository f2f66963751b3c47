//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs one of the scripts for macOS on a Mac that is not there.
func script(t *testing.T, name, disabled string) string {
	t.Helper()
	return mac{root: t.TempDir(), disabled: disabled}.run(t, name)
}

// mac is a Mac where each program that a script calls only notes that it was.
type mac struct {
	root     string // has what is told apart by its place
	disabled string // what launchctl says of the daemon
	tray     string // and of the tray
}

func (m mac) file(path string) string { return filepath.Join(m.root, path) }

func (m mac) run(t *testing.T, name string) string {
	t.Helper()
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	for program, says := range map[string]string{
		"launchctl": `[ "$1" != print ] || echo '` + m.tray + `'
[ "$1" != print-disabled ] || printf '%s\n' "disabled services = {" '	"com.example" => disabled' '	"dev.adit.daemon.other" => true' '` + m.disabled + `' "}"`,
		"stat": "echo 501", "id": "echo 0", "ps": "", "readlink": "", "pkgutil": "",
		"mkdir": "", "chown": "", "chmod": "", "rm": "", "touch": "", "ln": "", "sleep": "", "sudo": "",
	} {
		text := "#!/bin/sh\necho \"" + program + " $*\" >>'" + log + "'\n" + says + "\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, real := range []string{"grep", "sort"} {
		path, err := exec.LookPath(real)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, real)); err != nil {
			t.Fatal(err)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../macos/" + name)
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer(macNote, m.file(macNote), "[ -e "+macReceipt, "[ -e "+m.file(macReceipt)).Replace(string(text))
	file := filepath.Join(bin, "script")
	if err := os.WriteFile(file, []byte(here), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sh, file)
	cmd.Env = []string{"PATH=" + bin}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	did, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(did)
}

const (
	macReceipt = "/private/var/db/receipts/dev.adit.pkg.plist"
	macNote    = "/private/var/run/adit-upgrade"
)

// TestMacUpgradeShowsNobodyWhatTheyDoNotHave: who has quit the tray gets none, and
// the page with the token field is for a first installation.
func TestMacUpgradeShowsNobodyWhatTheyDoNotHave(t *testing.T) {
	const tray, page = "launchctl bootstrap gui/501 ", " open http"
	for name, tt := range map[string]struct {
		upgrade    bool
		state      string
		tray, page bool
	}{
		"a first installation":         {false, "", true, true},
		"an upgrade with a tray":       {true, "	state = running", true, false},
		"an upgrade after a tray quit": {true, "	state = not running", false, false},
		"an upgrade without the agent": {true, "", false, false},
	} {
		m := mac{root: t.TempDir(), tray: tt.state}
		for _, file := range []string{macReceipt, macNote} {
			if err := os.MkdirAll(filepath.Dir(m.file(file)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if tt.upgrade {
			if err := os.WriteFile(m.file(macReceipt), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m.run(t, "preinstall")
		did := m.run(t, "postinstall")
		if strings.Contains(did, tray) != tt.tray || strings.Contains(did, page) != tt.page {
			t.Errorf("%s: want a tray %t and the page %t, got:\n%s", name, tt.tray, tt.page, did)
		}
	}
}

func TestMacUpgradeLeavesADisabledDaemonAlone(t *testing.T) {
	const load = "launchctl bootstrap system /Library/LaunchDaemons/dev.adit.daemon.plist\n"
	for _, said := range []string{`	"dev.adit.daemon" => disabled`, `	"dev.adit.daemon" => true`} {
		did := script(t, "postinstall", said)
		if strings.Contains(did, "launchctl enable") || strings.Contains(did, load) || strings.Contains(did, " open ") {
			t.Errorf("%s: the daemon is started again:\n%s", said, did)
		}
	}
	for _, said := range []string{"", `	"dev.adit.daemon" => enabled`, `	"dev.adit.daemon" => false`} {
		if did := script(t, "postinstall", said); !strings.Contains(did, load) || !strings.Contains(did, " open ") {
			t.Errorf("%q: the daemon is not started:\n%s", said, did)
		}
	}
}

// TestMacUninstallLeavesNothingDisabled: who installs it anew wants it to run.
func TestMacUninstallLeavesNothingDisabled(t *testing.T) {
	if did := script(t, "uninstall.command", ""); !strings.Contains(did, "launchctl enable system/dev.adit.daemon\n") {
		t.Errorf("got:\n%s", did)
	}
}

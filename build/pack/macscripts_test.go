//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs one of the scripts for macOS where each program that it calls only
// notes that it was; launchctl says disabled of the daemon.
func script(t *testing.T, name, disabled string) string {
	t.Helper()
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	for program, says := range map[string]string{
		"launchctl": `[ "$1" != print-disabled ] || printf '%s\n' "disabled services = {" '	"com.example" => disabled' '	"dev.adit.daemon.other" => true' '` + disabled + `' "}"`,
		"stat":      "echo 501", "id": "echo 0", "ps": "", "readlink": "", "pkgutil": "",
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
	cmd := exec.CommandContext(t.Context(), sh, "../macos/"+name)
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

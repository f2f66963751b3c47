//go:build linux

package service

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSystemdStateIsReadFromProperties(t *testing.T) {
	for out, want := range map[string]string{
		"LoadState=loaded\nActiveState=active":                            Running,
		"LoadState=loaded\nActiveState=activating":                        Starting,
		"LoadState=loaded\nActiveState=failed":                            Failed,
		"LoadState=loaded\nActiveState=activating\nSubState=auto-restart": Failed,
		"LoadState=loaded\nActiveState=inactive":                          Stopped,
		"LoadState=not-found\nActiveState=active":                         NotInstalled,
	} {
		if got := systemdState(out); got != want {
			t.Errorf("%q: got %s, want %s", out, got, want)
		}
	}
}

func TestTheProgramOfAServiceIsTold(t *testing.T) {
	for out, want := range map[string]string{
		"ExecStart={ path=/usr/bin/adit ; argv[]=/usr/bin/adit start ; ignore_errors=no ; start_time=[n/a] ; pid=0 }": "/usr/bin/adit",
		"ExecStart={ path=/opt/my tools/adit ; argv[]=/opt/my tools/adit start ; ignore_errors=no }":                  "/opt/my tools/adit",
		"": "",
	} {
		if got, err := systemdProgram(out); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", out, got, err, want)
		}
	}
	programs := []string{"/usr/bin/adit", "/usr/bin/adit2", "/opt/my tools/adit", "/opt/it's/$adit"}
	for _, of := range programs {
		for _, exe := range programs {
			want := of == exe
			if got := scriptRuns(PackagedScript(OpenRCScript(of)), true, exe); got != want {
				t.Errorf("OpenRC's script of %s, asked for %s: got %t", of, exe, got)
			}
			if got := scriptRuns(SysVScript(of), false, exe); got != want {
				t.Errorf("System V's script of %s, asked for %s: got %t", of, exe, got)
			}
		}
	}
}

// TestOpenRCRunsTheProgramWhereverItLies reads the script as OpenRC does, which has the
// shell read the command once more.
func TestOpenRCRunsTheProgramWhereverItLies(t *testing.T) {
	for _, exe := range []string{"/usr/bin/adit", "/opt/my tools/adit", "/opt/it's/adit", `/opt/$HOME/a"b`, "/opt/`id`/a;b&c", `/opt/a\b/*`} {
		file := filepath.Join(t.TempDir(), "adit")
		if err := os.WriteFile(file, []byte(OpenRCScript(exe)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `. "$0" && eval printf "'%s\n'" $command -- $command_args`, file).CombinedOutput()
		if got, want := string(out), exe+"\n--\nstart\n"; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", exe, got, err, want)
		}
	}
}

// TestOwnUnitThatHidesAPackages: systemd goes by what adit service install made
// before the package came, which would run the old program for ever.
func TestOwnUnitThatHidesAPackages(t *testing.T) {
	root, bin := t.TempDir(), t.TempDir()
	asked := filepath.Join(bin, "asked")
	write := func(file, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(bin, "systemctl"), "#!/bin/sh\necho \"$*\" >>"+asked+"\n", 0o755)
	t.Setenv("PATH", bin)
	s := systemd{root: root}
	own, packages := filepath.Join(root, ownUnit), filepath.Join(root, packagedUnits[0])
	want := func(what, file string, packaged bool, hidden string) {
		t.Helper()
		if f, p := s.declared(); f != file || p != packaged || s.hidden() != hidden {
			t.Errorf("%s: got %q, of a package %t, hiding %q; want %q, %t, %q", what, f, p, s.hidden(), file, packaged, hidden)
		}
	}
	want("nothing", "", false, "")
	write(own, SystemdUnit("/usr/local/bin/adit"), 0o644)
	want("ours", own, false, "")
	write(packages, SystemdUnit(PackagedProgram), 0o644)
	want("both", own, false, packages)
	write(own, SystemdUnit(PackagedProgram), 0o644)
	want("a changed copy of the package's", packages, true, "")
	if err := errors.Join(os.Remove(own), os.Symlink("/dev/null", own)); err != nil {
		t.Fatal(err)
	}
	want("the package's, masked", packages, true, "")
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	want("the package's", packages, true, "")

	write(own, SystemdUnit("/usr/local/bin/adit"), 0o644)
	if err := s.uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("ours removed", packages, true, "")
	text, err := os.ReadFile(asked)
	if got := strings.ReplaceAll(string(text), "\n", ", "); err != nil || got != "disable adit.service, daemon-reload, enable adit.service, " {
		t.Errorf("systemctl was asked for %q, error %v", got, err)
	}
}

func TestManagersWordsMakeASentence(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'Failed to stop adit.service: Access denied'; echo \"See system logs and 'systemctl status adit.service' for details.\"; exit 4": "Failed to stop adit.service: Access denied",
		"echo ' * one. '; echo; echo '* two'; exit 1": "* one; * two",
		"exit 3": "exit status 3",
	} {
		_, err := command(t.Context(), "sh", "-c", script)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) || exitCode(err) < 1 {
			t.Errorf("got %v (exit code %d), want the end %q", err, exitCode(err), want)
		}
	}
}

func TestInstallRefusesAProgramThatOthersMayReplace(t *testing.T) {
	exe := filepath.Join("/tmp", "adit-test-"+t.Name())
	if err := os.WriteFile(exe, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(exe)
	if err := checkExecutable(exe); err == nil || !strings.Contains(err.Error(), "/usr/local/bin") {
		t.Errorf("in /tmp: got error %v, want where to put it", err)
	}
	if err := checkExecutable("adit"); err == nil {
		t.Error("a relative path was accepted")
	}
	if err := checkExecutable("/etc"); err == nil {
		t.Error("a folder was accepted")
	}
	// Such a folder's owner, or anybody, replaces a file that is root's.
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := checkFolders(filepath.Join(open, "adit")); err == nil || !strings.Contains(err.Error(), open) {
		t.Errorf("in a folder that anybody may write to: got error %v, want the folder named", err)
	}
	info, err := os.Stat("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOwner("/bin/sh", info); err != nil {
		t.Errorf("/bin/sh: %v", err)
	}
}

func TestMainEndsOnSIGTERM(t *testing.T) {
	err := Main(context.Background(), func(ctx context.Context, _ func()) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return errors.New("stopped")
	})
	if err == nil || err.Error() != "stopped" {
		t.Errorf("got error %v, want what run returned", err)
	}
}

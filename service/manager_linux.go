package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	kardianos "github.com/kardianos/service"

	"adit/internal/paths"
)

// packageRemoval says how to remove a package that has installed the service.
const packageRemoval = "remove the package"

// current finds the service manager of this machine.
func current() (manager, error) {
	switch platform := kardianos.Platform(); platform {
	case "linux-systemd":
		return systemd{}, nil
	case "linux-openrc":
		return initScript{openrc: true}, missing("rc-service", "rc-update")
	case "unix-systemv":
		// This is what remains if no other is found, as in most containers.
		return initScript{}, missing("start-stop-daemon")
	case "":
		return nil, errNoManager
	default:
		return nil, fmt.Errorf("the service manager %s is not supported: have it run adit start", platform)
	}
}

// checkFolders refuses a program in a folder whose owner, or anybody, could replace it.
func checkFolders(exe string) error {
	for dir := filepath.Dir(exe); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		owned := !ok || stat.Uid == 0
		if !owned || info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("%s may be replaced by others than root, because of who may write to %s: put it in place first, with sudo install -m 755 %s /usr/local/bin/adit", exe, dir, exe)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

var errNoManager = errors.New("no service manager was found on this machine: run adit start under one of your own")

// missing returns errNoManager if one of the programs that make up a service manager is not
// installed.
func missing(programs ...string) error {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		// An ordinary user's PATH may lack the folders of the system's programs.
		if !exists("/sbin/"+name) && !exists("/usr/sbin/"+name) {
			return errNoManager
		}
	}
	return nil
}

// declare makes kardianos/service write and enable the declaration.
func declare(exe string, option, script string) error {
	svc, err := kardianos.New(nil, &kardianos.Config{
		Name: Name, DisplayName: DisplayName, Description: Description,
		Executable: exe, Arguments: []string{"start"},
		Option: kardianos.KeyValue{option: script},
	})
	if err != nil {
		return err
	}
	return svc.Install()
}

// systemd has its files below root; if empty, /.
type systemd struct{ root string }

const (
	ownUnit   = "/etc/systemd/system/adit.service"
	ownWanted = "/etc/systemd/system/multi-user.target.wants/adit.service"
)

var packagedUnits = []string{"/usr/lib/systemd/system/adit.service", "/lib/systemd/system/adit.service"}

func (systemd) name() string { return "systemd" }

func (systemd) log() string { return "journalctl -u " + Name }

func (s systemd) declared() (string, bool) {
	unit, own := s.packaged(), filepath.Join(s.root, ownUnit)
	switch {
	case unit != "" && s.hidden() == "":
		return unit, true
	case exists(own):
		return own, false
	}
	return "", false
}

func (s systemd) packaged() string {
	for _, file := range packagedUnits {
		if file = filepath.Join(s.root, file); exists(file) {
			return file
		}
	}
	return ""
}

// hidden returns the package's unit if systemd uses one of ours that runs a different program
// instead, because ours was installed first. A masked unit, or a copy of the package's that an
// administrator made to change it, hides nothing.
func (s systemd) hidden() string {
	own := filepath.Join(s.root, ownUnit)
	info, err := os.Lstat(own)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, err := os.ReadFile(own)
	if err != nil || strings.Contains(string(text), "ExecStart="+PackagedProgram+" ") {
		return ""
	}
	return s.packaged()
}

func (s systemd) install(ctx context.Context, exe string) error {
	// Left by an older version or by an interrupted installation.
	if err := removeAll(filepath.Join(s.root, ownUnit)); err != nil {
		return err
	}
	if err := declare(exe, "SystemdScript", SystemdUnit(exe)); err != nil {
		return err
	}
	_, err := command(ctx, "systemctl", "daemon-reload")
	return err
}

func (s systemd) uninstall(ctx context.Context) error {
	// This fails if the unit is gone and only its links are left, which are removed below.
	_, _ = command(ctx, "systemctl", "disable", "adit.service")
	if err := removeAll(filepath.Join(s.root, ownUnit), filepath.Join(s.root, ownWanted)); err != nil {
		return err
	}
	if _, err := command(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	if s.packaged() != "" { // which ours has hidden
		_, err := command(ctx, "systemctl", "enable", "adit.service")
		return err
	}
	// systemd created this folder; if it contains a person's file, it stays.
	_ = os.Remove(filepath.Join("/", s.root, "etc/adit"))
	// systemd remembers a failed unit until this.
	_, _ = command(ctx, "systemctl", "reset-failed", "adit.service")
	return nil
}

func (systemd) start(ctx context.Context) error {
	_, err := command(ctx, "systemctl", "start", "adit.service")
	return err
}

func (systemd) stop(ctx context.Context) error {
	_, err := command(ctx, "systemctl", "stop", "adit.service")
	if exitCode(err) == 5 {
		return ErrNotInstalled
	}
	return err
}

func (systemd) state(ctx context.Context) (string, error) {
	out, err := command(ctx, "systemctl", "show", "--property=LoadState,ActiveState,SubState", "adit.service")
	if err != nil {
		return "", err
	}
	return systemdState(out), nil
}

func (systemd) runs(ctx context.Context, exe string) (bool, error) {
	// What systemd uses, part of which an administrator may have changed.
	out, err := command(ctx, "systemctl", "show", "--property=ExecStart", "adit.service")
	if err != nil {
		return false, err
	}
	program, err := systemdProgram(out)
	return err == nil && sameFile(program, exe), err
}

// systemdProgram extracts the program from the output of `systemctl show`: ExecStart={
// path=/usr/bin/adit ; argv[]=/usr/bin/adit start ; …
func systemdProgram(out string) (string, error) {
	_, rest, _ := strings.Cut(out, "path=")
	program, _, ok := strings.Cut(rest, " ; argv[]=")
	if !ok {
		return "", fmt.Errorf("the unit's program is not in %q", out)
	}
	return program, nil
}

// systemdState interprets the output of `systemctl show`.
func systemdState(out string) string {
	switch {
	case strings.Contains(out, "LoadState=not-found"):
		return NotInstalled
	case strings.Contains(out, "ActiveState=active"), strings.Contains(out, "ActiveState=reloading"):
		return Running
	case strings.Contains(out, "SubState=auto-restart"):
		return Failed // it has ended by itself, and systemd waits to try it again
	case strings.Contains(out, "ActiveState=activating"):
		return Starting
	case strings.Contains(out, "ActiveState=failed"):
		return Failed
	default:
		return Stopped
	}
}

// initScript is a service that consists of a script in /etc/init.d, run by OpenRC or by System V
// init.
type initScript struct{ openrc bool }

const scriptFile = "/etc/init.d/adit"

func (i initScript) name() string {
	if i.openrc {
		return "openrc"
	}
	return "sysv"
}

func (initScript) log() string { return "/var/log/adit/adit.log (or adit.err beside it)" }

func (initScript) declared() (string, bool) {
	text, err := os.ReadFile(scriptFile)
	if err != nil {
		return "", false
	}
	return scriptFile, strings.Contains(string(text), packageMark)
}

func (i initScript) install(ctx context.Context, exe string) error {
	if err := addUser(ctx); err != nil {
		return err
	}
	if err := removeAll(scriptFile); err != nil {
		return err
	}
	if i.openrc {
		if err := declare(exe, "OpenRCScript", OpenRCScript(exe)); err != nil {
			return err
		}
		// It is now in the machine's current runlevel, which need not be the one that the machine
		// boots into.
		_, _ = command(ctx, "rc-update", "--all", "delete", Name)
		_, err := command(ctx, "rc-update", "add", Name, "default")
		return err
	}
	if err := removeAll(runlevelLinks()...); err != nil {
		return err
	}
	return declare(exe, "SysvScript", SysVScript(exe))
}

func (i initScript) uninstall(ctx context.Context) error {
	if i.openrc {
		// This fails if the service is in no runlevel.
		_, _ = command(ctx, "rc-update", "--all", "delete", Name)
	}
	if err := removeAll(append(runlevelLinks(), scriptFile)...); err != nil {
		return err
	}
	_ = os.Remove("/etc/adit") // with a person's file in it, it stays
	return errors.Join(os.RemoveAll("/var/log/adit"), os.RemoveAll(paths.Public()))
}

// runlevelLinks returns the links that start and stop the service. Removing only the script would
// leave them dangling.
func runlevelLinks() []string {
	links, _ := filepath.Glob("/etc/rc?.d/[SK][0-9][0-9]adit") // the pattern is well-formed
	return links
}

func (i initScript) start(ctx context.Context) error {
	if state, err := i.state(ctx); err == nil && state == Running {
		return nil
	}
	_, err := i.script(ctx, "start")
	return err
}

func (i initScript) stop(ctx context.Context) error {
	if !exists(scriptFile) {
		return ErrNotInstalled
	}
	_, err := i.script(ctx, "stop")
	return err
}

func (i initScript) state(ctx context.Context) (string, error) {
	if !exists(scriptFile) {
		return NotInstalled, nil
	}
	_, err := i.script(ctx, "status")
	switch exitCode(err) {
	case 3:
		return Stopped, nil
	case 32: // OpenRC: it has crashed
		return Failed, nil
	}
	if err != nil {
		return "", err
	}
	return Running, nil
}

// runs compares the line that names the program with that of a script for exe.
func (i initScript) runs(_ context.Context, exe string) (bool, error) {
	text, err := os.ReadFile(scriptFile)
	if err != nil {
		return false, err
	}
	return scriptRuns(string(text), i.openrc, exe), nil
}

func scriptRuns(text string, openrc bool, exe string) bool {
	ours, key := SysVScript(exe), "\nexec_path="
	if openrc {
		ours, key = OpenRCScript(exe), "\ncommand="
	}
	_, ours, _ = strings.Cut(ours, key)
	ours, _, _ = strings.Cut(ours, "\n")
	return strings.Contains(text, key+ours+"\n")
}

func (i initScript) script(ctx context.Context, verb string) (string, error) {
	if i.openrc {
		return command(ctx, "rc-service", Name, verb)
	}
	return command(ctx, scriptFile, verb)
}

// addUser creates the system user as which the init scripts run the daemon.
func addUser(ctx context.Context) error {
	if _, err := command(ctx, "id", "-u", Name); err == nil {
		return nil
	}
	if _, err := exec.LookPath("useradd"); err == nil {
		_, err := command(ctx, "useradd", "--system", "--user-group", "--home-dir", "/var/lib/adit", "--no-create-home", "--shell", "/bin/false", Name)
		return err
	}
	// BusyBox, as on Alpine.
	if _, err := command(ctx, "addgroup", "-S", Name); err != nil && !strings.Contains(err.Error(), "in use") {
		return err
	}
	_, err := command(ctx, "adduser", "-S", "-D", "-H", "-h", "/var/lib/adit", "-s", "/bin/false", "-G", Name, Name)
	return err
}

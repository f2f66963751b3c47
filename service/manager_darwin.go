package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	kardianos "github.com/kardianos/service"

	"adit/internal/paths"
)

const (
	ownPlist = "/Library/LaunchDaemons/" + Label + ".plist"
	// An installer package leaves its receipt here.
	receipt = "/var/db/receipts/dev.adit.pkg.plist"
	target  = "system/" + Label
	logDir  = "/Library/Logs/Adit"
)

// checkFolders leaves the folders to the person who administers this Mac, to whom Homebrew gives
// /usr/local/bin.
func checkFolders(string) error { return nil }

// packageRemoval says how to remove a package that has installed the service.
const packageRemoval = "run /Applications/Adit.app/Contents/Resources/uninstall.command"

func current() (manager, error) { return launchd{}, nil }

type launchd struct{}

func (launchd) name() string { return "launchd" }

func (launchd) log() string { return logDir + "/adit.log (or adit.err beside it)" }

func (launchd) declared() (string, bool) {
	if !exists(ownPlist) {
		return "", false
	}
	return ownPlist, exists(receipt)
}

func (launchd) install(ctx context.Context, exe string) error {
	if err := removeAll(ownPlist); err != nil {
		return err
	}
	// The daemon runs as the system's user "daemon" (1) and keeps its state and its log here.
	if err := os.MkdirAll(paths.Public(), 0o755); err != nil {
		return err
	}
	if err := os.Lchown(paths.Public(), 1, 1); err != nil {
		return err
	}
	if err := makeLog(logDir); err != nil {
		return err
	}
	svc, err := kardianos.New(nil, &kardianos.Config{
		Name: Label, DisplayName: DisplayName, Description: Description,
		Executable: exe, Arguments: []string{"start"},
		Option: kardianos.KeyValue{"LaunchdConfig": LaunchdPlist(exe)},
	})
	if err != nil {
		return err
	}
	return svc.Install()
}

// makeLog makes the log's folder for the user "daemon", with the file in it that the daemon empties
// when it has grown. The folder belongs to root in the meantime: its owner could put a link there,
// and be given ownership of the link's target.
func makeLog(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Lchown(dir, 0, 0); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder: remove it first", dir)
	}
	file := filepath.Join(dir, errorsName)
	if err := removeAll(file); err != nil {
		return err
	}
	words, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return errors.Join(words.Chown(1, 1), words.Close(), os.Lchown(dir, 1, 1))
}

func (launchd) uninstall(context.Context) error {
	return errors.Join(removeAll(ownPlist), os.RemoveAll(logDir))
}

// start loads the job; launchd then runs it at once, and on every boot.
func (l launchd) start(ctx context.Context) error {
	if state, err := l.state(ctx); err == nil && (state == Running || state == Starting) {
		return nil
	}
	_, _ = command(ctx, "launchctl", "enable", target) // it may never have been disabled
	for {
		_, err := command(ctx, "launchctl", "bootstrap", "system", ownPlist)
		if err == nil {
			return nil
		}
		// 37 and 5 mean that the job is loaded already, and merely not running; or that an unloaded
		// one is still ending, after which it can be loaded.
		if _, kickErr := command(ctx, "launchctl", "kickstart", target); kickErr == nil {
			return nil
		}
		if code := exitCode(err); code != 37 && code != 5 {
			return err
		}
		if pause(ctx) != nil {
			return err
		}
	}
}

func (launchd) stop(ctx context.Context) error {
	if !exists(ownPlist) {
		return ErrNotInstalled
	}
	// KeepAlive would restart a job that is only killed, so it is unloaded.
	_, err := command(ctx, "launchctl", "bootout", target)
	if code := exitCode(err); err != nil && code != 3 && code != 36 && code != 113 {
		return err // 3 and 113: it is not loaded; 36: it is on its way out
	}
	// launchctl may return before the daemon has ended.
	for {
		if _, err := command(ctx, "launchctl", "print", target); exitCode(err) == 113 {
			return nil
		}
		if pause(ctx) != nil {
			return errors.New("the daemon was told to end and has not ended in time")
		}
	}
}

// runs looks for exe's line in the declaration.
func (launchd) runs(_ context.Context, exe string) (bool, error) {
	text, err := os.ReadFile(ownPlist)
	if err != nil {
		return false, err
	}
	_, ours, _ := strings.Cut(LaunchdPlist(exe), "<array>")
	ours, _, _ = strings.Cut(ours, "</string>")
	return strings.Contains(string(text), ours+"</string>"), nil
}

var jobState = regexp.MustCompile(`(?m)^\s*state = (.+)$`)

func (launchd) state(ctx context.Context) (string, error) {
	out, err := command(ctx, "launchctl", "print", target)
	if exitCode(err) == 113 {
		if exists(ownPlist) {
			return Stopped, nil
		}
		return NotInstalled, nil
	}
	if err != nil {
		return "", err
	}
	m := jobState.FindStringSubmatch(out)
	if m == nil {
		return Stopped, nil
	}
	switch strings.TrimSpace(m[1]) {
	case "running":
		return Running, nil
	case "spawn scheduled", "waiting":
		return Starting, nil
	default:
		return Stopped, nil
	}
}

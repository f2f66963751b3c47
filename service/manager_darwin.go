package service

import (
	"context"
	"errors"
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

// checkFolders leaves the folders to the person who administers this Mac, whom
// Homebrew lets own /usr/local/bin.
func checkFolders(string) error { return nil }

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
	// The daemon runs as the system's user "daemon" (1) and keeps its state and
	// its log here.
	for _, dir := range []string{paths.Public(), logDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.Chown(dir, 1, 1); err != nil {
			return err
		}
	}
	// The daemon empties it when it has grown.
	words, err := os.OpenFile(filepath.Join(logDir, errorsName), os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if err := errors.Join(words.Chown(1, 1), words.Close()); err != nil {
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

func (launchd) uninstall(context.Context) error {
	return errors.Join(removeAll(ownPlist), os.RemoveAll(logDir))
}

// start loads the job; launchd then runs it at once, and with every start of
// the machine.
func (l launchd) start(ctx context.Context) error {
	if state, err := l.state(ctx); err == nil && (state == Running || state == Starting) {
		return nil
	}
	_, _ = command(ctx, "launchctl", "enable", target) // it may never have been disabled
	if _, err := command(ctx, "launchctl", "bootstrap", "system", ownPlist); err != nil {
		// 37 and 5: it is loaded already, and only not running.
		_, kickErr := command(ctx, "launchctl", "kickstart", target)
		if kickErr != nil {
			return err
		}
	}
	return nil
}

func (launchd) stop(ctx context.Context) error {
	if !exists(ownPlist) {
		return ErrNotInstalled
	}
	// KeepAlive would bring back a job that is only killed: it is unloaded.
	_, err := command(ctx, "launchctl", "bootout", target)
	if code := exitCode(err); code == 3 || code == 36 || code == 113 {
		return nil // not loaded, or already on its way out
	}
	return err
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

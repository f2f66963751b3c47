package tray

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/windows/registry"
)

// autostart is a part of the registry that lists what starts at login.
type autostart struct {
	root registry.Key
	run  string // the key that has the command
	// approved is the key in which Windows' settings and the Task Manager record what a person has
	// turned off there; the command stays in place.
	approved string
	value    string // the name of ours in both
}

const windowsVersion = `Software\Microsoft\Windows\CurrentVersion`

var (
	own        = autostart{registry.CURRENT_USER, windowsVersion + `\Run`, windowsVersion + `\Explorer\StartupApproved\Run`, "Adit"}
	everybodys = autostart{registry.LOCAL_MACHINE, windowsVersion + `\Run`, windowsVersion + `\Explorer\StartupApproved\Run`, "Adit"}
)

// ownKey is the person's key with adit's own values.
var ownKey = `Software\Adit`

// noLogin is set for a person who does not want the tray that the installer set up for everybody.
const noLogin = "NoTrayAtLogin"

// there reports whether it has the command.
func (a autostart) there() bool { return hasValue(a.root, a.run, a.value) }

// starts reports whether it starts the tray.
func (a autostart) starts() bool { return a.there() && !a.turnedOff() }

// turnedOff reports whether the person has turned it off outside adit. In that case the first byte
// of the record is odd, as others have observed on Windows 8 and 10; no record means on.
func (a autostart) turnedOff() bool {
	key, err := registry.OpenKey(a.root, a.approved, registry.QUERY_VALUE)
	if err != nil {
		return false
	}
	defer key.Close()
	noted, _, err := key.GetBinaryValue(a.value)
	return err == nil && len(noted) > 0 && noted[0]&1 == 1
}

// startsAtLogin reports whether a Run key starts the tray, and the person has
// not declined it.
func (explorer) startsAtLogin() bool { return !declined() && (own.starts() || everybodys.starts()) }

// Declined reports whether the person does not want the tray at login although the installer starts
// one for everybody.
func Declined() bool { return declined() }

func declined() bool { return hasValue(registry.CURRENT_USER, ownKey, noLogin) }

func (explorer) setStartAtLogin(command []string, on bool) error {
	var err error
	if on {
		err = startAtLogin(command)
	} else {
		err = stayAwayAtLogin()
	}
	if err != nil {
		return fmt.Errorf("change what starts at login: %w", err)
	}
	return nil
}

func startAtLogin(command []string) error {
	if err := deleteValue(ownKey, noLogin); err != nil || everybodys.starts() {
		return err
	}
	// What is turned off for everybody cannot be turned on by an ordinary user, so it is started
	// for this person only.
	if err := deleteValue(own.approved, own.value); err != nil {
		return err
	}
	quoted := make([]string, len(command))
	for i, arg := range command {
		quoted[i] = syscall.EscapeArg(arg)
	}
	return setValue(own.run, own.value, strings.Join(quoted, " "))
}

func stayAwayAtLogin() error {
	if err := deleteValue(own.run, own.value); err != nil || !everybodys.there() {
		return err
	}
	return setValue(ownKey, noLogin, "1")
}

func hasValue(root registry.Key, path, name string) bool {
	key, err := registry.OpenKey(root, path, registry.QUERY_VALUE)
	if err != nil {
		return false
	}
	defer key.Close()
	_, _, err = key.GetValue(name, nil)
	return err == nil
}

func setValue(path, name, value string) error {
	key, _, err := registry.CreateKey(registry.CURRENT_USER, path, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer key.Close()
	return key.SetStringValue(name, value)
}

func deleteValue(path, name string) error {
	key, err := registry.OpenKey(registry.CURRENT_USER, path, registry.SET_VALUE)
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer key.Close()
	if err := key.DeleteValue(name); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	return nil
}

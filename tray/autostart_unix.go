//go:build !windows && !darwin

package tray

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"adit/internal/atomicfile"
)

// autostart is what starts with a session, according to the XDG autostart specification: a person's
// file hides the system's file of the same name.
type autostart struct {
	home   string // $XDG_CONFIG_HOME; if empty, that of the environment
	system string // if empty, /etc/xdg
}

const autostartFile = "adit-tray.desktop"

func (a autostart) files() (own, system string, err error) {
	home := a.home
	if home == "" {
		if home, err = os.UserConfigDir(); err != nil {
			return "", "", fmt.Errorf("find the folder of what starts at login: %w", err)
		}
	}
	dir := a.system
	if dir == "" {
		dir = "/etc/xdg"
	}
	return filepath.Join(home, "autostart", autostartFile), filepath.Join(dir, "autostart", autostartFile), nil
}

func (a autostart) on() bool {
	own, system, err := a.files()
	if err != nil {
		return false
	}
	for _, file := range []string{own, system} {
		if text, err := os.ReadFile(file); err == nil {
			return starts(string(text))
		}
	}
	return false
}

// starts reports whether a session starts the entry. GNOME's settings, and those of some other
// desktops, turn an entry off with a key of their own.
func starts(text string) bool {
	group := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			group = line
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		if group != "[Desktop Entry]" {
			continue
		}
		switch strings.TrimSpace(key) {
		case "Hidden":
			if value == "true" {
				return false
			}
		case "X-GNOME-Autostart-enabled":
			if value == "false" {
				return false
			}
		}
	}
	return true
}

func (a autostart) set(command []string, on bool) error {
	own, system, err := a.files()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(system)
	if on == (err == nil && starts(string(text))) {
		// The system already does what is wanted, or there is nothing to hide.
		if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("change what starts at login: %w", err)
		}
		return nil
	}
	var entry strings.Builder
	entry.WriteString("[Desktop Entry]\nType=Application\nName=adit\nIcon=adit\n")
	fmt.Fprintf(&entry, "Exec=%s\n", execLine(command))
	if !on {
		entry.WriteString("Hidden=true\n")
	}
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return fmt.Errorf("change what starts at login: %w", err)
	}
	return atomicfile.Write(own, []byte(entry.String()), 0o644)
}

// execLine quotes a command as the desktop entry specification wants it.
func execLine(command []string) string {
	parts := make([]string, len(command))
	for i, arg := range command {
		arg = strings.ReplaceAll(arg, "%", "%%")
		if strings.ContainsAny(arg, " \t\n\"'\\><~|&;$*?#()`") {
			arg = `"` + strings.NewReplacer(`\`, `\\\\`, `"`, `\\"`, "`", "\\\\`", "$", `\\$`).Replace(arg) + `"`
		}
		parts[i] = arg
	}
	return strings.Join(parts, " ")
}

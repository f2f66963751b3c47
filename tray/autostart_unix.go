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

// autostart is what starts with a session, by the XDG autostart specification:
// a person's file hides the system's one of the same name.
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
			return !hidden(string(text))
		}
	}
	return false
}

func hidden(text string) bool {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "Hidden" {
			return strings.TrimSpace(value) == "true"
		}
	}
	return false
}

func (a autostart) set(command []string, on bool) error {
	own, system, err := a.files()
	if err != nil {
		return err
	}
	_, missing := os.Stat(system)
	if on == (missing == nil) {
		// What the system does is what is wanted, or nothing is there to hide.
		if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("change what starts at login: %w", err)
		}
		return nil
	}
	var text strings.Builder
	text.WriteString("[Desktop Entry]\nType=Application\nName=adit\nIcon=adit\n")
	fmt.Fprintf(&text, "Exec=%s\n", execLine(command))
	if !on {
		text.WriteString("Hidden=true\n")
	}
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return fmt.Errorf("change what starts at login: %w", err)
	}
	return atomicfile.Write(own, []byte(text.String()), 0o644)
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

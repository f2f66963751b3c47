//go:build !windows && !darwin

package browser

import "os"

// commands open a page, best first. Without a display, gio claims to have opened a program that
// ends right away; xdg-open knows of browsers in a terminal, and of Windows around WSL.
func commands() [][]string {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return [][]string{{"xdg-open"}}
	}
	return [][]string{{"xdg-open"}, {"gio", "open"}, {"x-www-browser"}}
}

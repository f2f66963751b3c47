//go:build !windows && !darwin

package browser

// commands open a page, best first.
var commands = [][]string{{"xdg-open"}, {"gio", "open"}, {"x-www-browser"}}

//go:build !windows && !darwin

package cli

// browserCommands open a page, best first.
var browserCommands = [][]string{{"xdg-open"}, {"gio", "open"}, {"x-www-browser"}}

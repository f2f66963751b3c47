package cli

import (
	"strings"
)

// Args is the command line of a process started as argv. The program that has
// no console, on Windows, is the tray; and so is the app of macOS, which the
// Finder starts without arguments or with one of its own.
func Args(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	// A path of Windows is read on every system, for the sake of its test.
	name := strings.ToLower(argv[0][strings.LastIndexAny(argv[0], `/\`)+1:])
	if strings.TrimSuffix(name, ".exe") == "adit-tray" {
		return append([]string{"tray"}, argv[1:]...)
	}
	if strings.Contains(argv[0], ".app/Contents/MacOS/") && (len(argv) == 1 || strings.HasPrefix(argv[1], "-psn_")) {
		return []string{"tray", "--open"}
	}
	return argv[1:]
}

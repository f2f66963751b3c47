package cli

import (
	"strings"
)

// Args returns the command line of a process started as argv. On Windows, the program without a
// console is the tray; so is the app on macOS, which the Finder starts without arguments or with
// one of its own.
func Args(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	// A Windows path is parsed on every system, so that this can be tested.
	name := strings.ToLower(argv[0][strings.LastIndexAny(argv[0], `/\`)+1:])
	if strings.TrimSuffix(name, ".exe") == "adit-tray" {
		return append([]string{"tray"}, argv[1:]...)
	}
	if strings.Contains(argv[0], ".app/Contents/MacOS/") && (len(argv) == 1 || strings.HasPrefix(argv[1], "-psn_")) {
		return []string{"tray", "--open"}
	}
	return argv[1:]
}

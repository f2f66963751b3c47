package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// Is reports whether f is a screen that a person looks at and that obeys
// ANSI sequences.
func Is(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	// Consoles before Windows 10 refuse it.
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

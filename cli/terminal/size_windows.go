package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// SizeOf returns how many columns and rows of f are visible; zero if unknown.
func SizeOf(f *os.File) (columns, rows int) {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) != nil {
		return 0, 0
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}

//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// SizeOf returns how many columns and rows of f are visible; zero if unknown.
func SizeOf(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

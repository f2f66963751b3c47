//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// screenSize is how many columns and rows of f a person sees; zero if that is not
// known.
func screenSize(f *os.File) (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}

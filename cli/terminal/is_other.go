//go:build !windows

package terminal

import "os"

// Is reports whether f is a screen that a person looks at and that obeys ANSI sequences.
func Is(f *os.File) bool {
	stat, err := f.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull && os.Getenv("TERM") != "dumb"
}

//go:build !windows

package update

import (
	"fmt"
	"os"
	"syscall"
)

// keep gives the program next what may have been set on the one that it is to
// replace: its mode, its owner and group, and its capabilities.
func keep(exe, next string) error {
	info, err := os.Stat(exe)
	if err != nil {
		return fmt.Errorf("look at the old program: %w", err)
	}
	if was, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(next, int(was.Uid), int(was.Gid)) // where that is not allowed, it is whose update it is
	}
	if err := os.Chmod(next, info.Mode().Perm()); err != nil {
		return fmt.Errorf("give the new program the mode of the old one: %w", err)
	}
	return keepCapabilities(exe, next)
}

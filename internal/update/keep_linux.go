package update

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const capabilities = "security.capability"

// keepCapabilities gives next those of exe, as setcap gives them to a relay that
// listens at ports below 1024. It is the last to be done: another owner takes them.
func keepCapabilities(exe, next string) error {
	given := make([]byte, 64) // 24 at most, by capabilities(7)
	n, err := unix.Getxattr(exe, capabilities, given)
	if err != nil {
		return nil // it has none, or the file system knows none
	}
	err = unix.Setxattr(next, capabilities, given[:n], 0)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%s has capabilities, which only root can give to the new program: update it with sudo", exe)
	}
	if err != nil {
		return fmt.Errorf("give the new program the capabilities of %s: %w", exe, err)
	}
	return nil
}

//go:build !windows

package machine

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// runInstead replaces this process with another program. It returns only if that fails.
func runInstead(command []string) error {
	if err := syscall.Exec(command[0], command, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	return nil
}

// endTrays ends all trays. It does nothing here, because a running program does not lock its file.
func endTrays(context.Context) error { return nil }

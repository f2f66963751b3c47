//go:build !windows

package machine

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// runInstead has another program take this one's place. It returns only if that
// cannot be done.
func runInstead(command []string) error {
	if err := syscall.Exec(command[0], command, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	return nil
}

// endTrays ends all trays. Here nothing holds a program that runs.
func endTrays(context.Context) error { return nil }

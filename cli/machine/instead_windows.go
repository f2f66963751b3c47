package machine

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// runInstead starts another program in place of this one, which must end when it returns.
func runInstead(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	return cmd.Process.Release()
}

// endTrays ends all trays, whoever runs them.
func endTrays(ctx context.Context) error {
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return fmt.Errorf("end the trays: %w", err)
	}
	if err := exec.CommandContext(ctx, filepath.Join(system, "taskkill.exe"), "/F", "/IM", "adit-tray.exe").Run(); err != nil {
		return fmt.Errorf("end the trays: %w", err)
	}
	return nil
}

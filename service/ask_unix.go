//go:build !windows && !darwin

package service

import (
	"context"
	"os/exec"
	"syscall"
)

// askStart leaves it to polkit to ask the person.
func askStart(ctx context.Context, exe string) error {
	if _, err := exec.LookPath("systemctl"); err == nil {
		_, err := command(ctx, "systemctl", "start", "adit.service")
		return err
	}
	_, err := command(ctx, "pkexec", exe, "service", "start")
	return err
}

func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

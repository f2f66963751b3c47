package service

import (
	"context"
	"os/exec"
	"syscall"
)

// askStart makes the system ask for an administrator. The path is passed as an argument of the
// script, so that nothing in it is executed.
func askStart(ctx context.Context, exe string) error {
	_, err := command(ctx, "osascript",
		"-e", "on run argv", "-e", `do shell script (quoted form of item 1 of argv) & " service start" with administrator privileges`, "-e", "end run", exe)
	return err
}

func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

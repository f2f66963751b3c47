package service

import (
	"context"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// askStart makes the system ask for an administrator.
func askStart(_ context.Context, exe string) error {
	verb, err := windows.UTF16PtrFromString("runas")
	if err != nil {
		return err
	}
	file, err := windows.UTF16PtrFromString(exe)
	if err != nil {
		return err
	}
	args, err := windows.UTF16PtrFromString("service start")
	if err != nil {
		return err
	}
	return windows.ShellExecute(0, verb, file, args, nil, windows.SW_HIDE)
}

func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

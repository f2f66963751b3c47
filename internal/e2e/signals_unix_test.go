//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// canStop reports whether a process can be held still here.
const canStop = true

// stopped holds processes still for a while.
func stopped(length time.Duration, list ...interface{ signal(syscall.Signal) }) {
	for _, p := range list {
		p.signal(syscall.SIGSTOP)
	}
	<-time.After(length)
	for _, p := range list {
		p.signal(syscall.SIGCONT)
	}
}

// runAs has a command run with another group than this process's, unless it is 0.
func runAs(cmd *exec.Cmd, gid int) {
	if gid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(gid)}}
	}
}

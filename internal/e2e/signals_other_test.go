//go:build !unix

package e2e

import (
	"os/exec"
	"syscall"
	"time"
)

// canStop reports whether a process can be held still here.
const canStop = false

// stopped holds processes still for a while.
func stopped(time.Duration, ...interface{ signal(syscall.Signal) }) {}

// runAs has a command run with another group than this process's, unless it is 0.
func runAs(*exec.Cmd, int) {}

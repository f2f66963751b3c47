package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpu is the CPU time used so far, user and system: the process's own clock,
// which counts threads that have ended too (clock_getcpuclockid).
func (p *process) cpu() time.Duration {
	const processClock = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|processClock), &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}

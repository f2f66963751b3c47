//go:build !linux

package main

import "time"

// cpu is the CPU time used so far, user and system; it is known on Linux only.
func (p *process) cpu() time.Duration { return 0 }

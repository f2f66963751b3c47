package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// idleEnv is set where this program runs once more to keep a processor awake;
// its value is the processor's number.
const idleEnv = "ADIT_BENCH_AWAKE"

// keepAwake keeps every processor of this machine from halting until the function
// returned is called: a loop on each that runs where nothing else would (Linux's
// SCHED_IDLE). To be woken from a halt costs a virtual machine more than a small
// request does; without halts what adit itself does is left.
func keepAwake(ctx context.Context) (stop func(), err error) {
	var loops []*exec.Cmd
	stop = func() {
		for _, c := range loops {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for cpu := range runtime.NumCPU() {
		c := exec.CommandContext(ctx, self)
		c.Env = append(os.Environ(), idleEnv+"="+strconv.Itoa(cpu))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		loops = append(loops, c)
	}
	return stop, nil
}

// idleHere runs the loop of keepAwake if this process was started for it, and
// returns at once if not.
func idleHere() {
	text := os.Getenv(idleEnv)
	if text == "" {
		return
	}
	fmt.Fprintln(os.Stderr, "bench: keep a processor awake:", idleOn(text))
	os.Exit(1)
}

func idleOn(number string) error {
	cpu, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
		return err
	}
	for parent := os.Getppid(); os.Getppid() == parent; {
		for range 1 << 20 { //nolint:revive // the loop is what keeps it awake
		}
	}
	return errors.New("the benchmark has ended")
}

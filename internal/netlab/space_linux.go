package netlab

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Space is a network namespace: a host with its own devices, addresses and sockets. It lasts until
// it is closed and no process or socket is left in it.
type Space struct{ file *os.File }

// NewSpace creates a space that has loopback.
func NewSpace() (*Space, error) {
	var s *Space
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		var err error
		if s, err = OpenSpace("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		return IP("link set lo up")
	})
	if err != nil && s != nil {
		s.Close()
	}
	return s, err
}

// OpenSpace opens the space at path, such as /run/netns/NAME.
func OpenSpace(path string) (*Space, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a network namespace: %w", err)
	}
	return &Space{file}, nil
}

// Path returns where other processes, such as ip, can find the space while this process has it
// open.
func (s *Space) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.file.Fd()) }

// Do calls f within the space. What f itself opens and starts is in the space; what other
// goroutines do for it is not. Calls may run concurrently.
func (s *Space) Do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// IP runs the program ip within the space, once for each line of arguments.
func (s *Space) IP(lines ...string) error { return s.Do(func() error { return IP(lines...) }) }

// IP is like Space.IP in the caller's space.
func IP(lines ...string) error {
	for _, args := range lines {
		out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	return nil
}

// Close releases the space.
func (s *Space) Close() error { return s.file.Close() }

// onThread calls f on a thread that ends with it, so that nobody else finds
// himself where f went. A child started in there must not ask to die with its
// parent (Pdeathsig), which means the thread.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever
		done <- f()
	}()
	return <-done
}

// Urgent gives the calling thread, and what it starts, priority over other work: a network that is
// late is a bad network. Call it within Do. If that is not allowed, it changes nothing.
func Urgent() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, -15) }

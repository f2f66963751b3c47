//go:build !linux && !darwin && !freebsd && !windows

package netwatch

// subscribe has the system tell of links, addresses, routes and wake-ups, as far
// as it does; stop ends that.
func subscribe() (sys system, stop func()) { return system{}, func() {} }

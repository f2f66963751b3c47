//go:build unix && !linux

package sockio

import "syscall"

// ReadFD reads from a socket that does not wait.
func ReadFD(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

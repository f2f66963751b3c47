package sockio

import (
	"syscall"
	"unsafe"
)

// ReadFD reads from a socket that does not wait, without announcing it.
func ReadFD(fd uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

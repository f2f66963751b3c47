//go:build !linux

package folder

// largeFile is what opening asks of the system for files of 2 GiB and more.
const largeFile = 0

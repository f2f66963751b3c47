//go:build !linux

package desktoptest

// endWindows has nothing to end: Windows is tried by Wine, on Linux.
func endWindows() {}

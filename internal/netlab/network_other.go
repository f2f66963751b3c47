//go:build !linux

package netlab

// Main does nothing: there are networks on Linux only.
func Main() {}

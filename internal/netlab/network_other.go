//go:build !linux

package netlab

// Main does nothing: networks exist on Linux only.
func Main() {}

//go:build !windows

package service

// Harden has nothing to do here: the declaration says it all.
func Harden() error { return nil }

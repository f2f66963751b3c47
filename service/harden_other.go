//go:build !windows

package service

// Harden does nothing here: the service's declaration covers everything.
func Harden() error { return nil }

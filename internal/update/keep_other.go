//go:build !windows && !linux

package update

func keepCapabilities(_, _ string) error { return nil }

//go:build !linux && !darwin && !windows

package config

const (
	// mountable is whether a file can be mounted where another is.
	mountable = false
	// cheap is whether a folder is watched without opening all that is in it.
	cheap = false
)

// remote reports whether what is at path may be changed by another machine,
// which the system does not tell of.
func remote(string) bool { return true }

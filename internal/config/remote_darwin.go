package config

import "golang.org/x/sys/unix"

const (
	// mountable is whether a file can be mounted where another is.
	mountable = false
	// cheap is whether a folder is watched without opening all that is in it.
	cheap = false
)

// remote reports whether what is at path may be changed by another machine,
// which the system does not tell of.
func remote(path string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false // gone since
	}
	return st.Flags&unix.MNT_LOCAL == 0
}

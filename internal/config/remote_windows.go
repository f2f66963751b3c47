package config

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

const (
	// mountable is whether a file can be mounted where another is.
	mountable = false
	// cheap is whether a folder is watched without opening all that is in it.
	cheap = true
)

// remote reports whether what is at path may be changed by another machine,
// which the system does not tell of.
func remote(path string) bool {
	volume := filepath.VolumeName(path)
	if strings.HasPrefix(volume, `\\`) {
		return true
	}
	root, err := windows.UTF16PtrFromString(volume + `\`)
	return err != nil || windows.GetDriveType(root) == windows.DRIVE_REMOTE
}

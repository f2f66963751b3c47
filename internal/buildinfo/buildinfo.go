// Package buildinfo says what this program was built from.
package buildinfo

import (
	"runtime"
	"runtime/debug"
)

// Set by the release build with -ldflags "-X adit/internal/buildinfo.version=…".
var version, commit, date string

// Info is what this program was built from.
type Info struct {
	Version string `json:"version"` // devel if it is no release
	Commit  string `json:"commit"`  // empty if it is not known
	// Modified is set if the tree had changes that are not in Commit.
	Modified bool   `json:"modified"`
	Date     string `json:"date"` // of the commit
	Go       string `json:"go_version"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// Get reads what the linker was told, and what the Go toolchain noted besides.
func Get() Info {
	i := Info{
		Version: version, Commit: commit, Date: date,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	build, ok := debug.ReadBuildInfo()
	if ok {
		if v := build.Main.Version; i.Version == "" && v != "" && v != "(devel)" {
			i.Version = v
		}
		for _, s := range build.Settings {
			switch {
			case s.Key == "vcs.revision" && i.Commit == "":
				i.Commit = s.Value
			case s.Key == "vcs.time" && i.Date == "":
				i.Date = s.Value
			case s.Key == "vcs.modified":
				i.Modified = s.Value == "true"
			}
		}
	}
	if i.Version == "" {
		i.Version = "devel"
	}
	return i
}

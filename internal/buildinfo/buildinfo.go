// Package buildinfo says what this program was built from.
package buildinfo

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the release build with -ldflags "-X adit/internal/buildinfo.version=…".
var version, commit, date string

// Info describes what this program was built from.
type Info struct {
	Version string `json:"version"` // devel if it is no release
	Commit  string `json:"commit"`  // empty if it is not known
	// Modified is set if the tree had changes that are not in Commit.
	Modified bool   `json:"modified"`
	Date     string `json:"date"` // of the commit
	Go       string `json:"go_version"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	// Platform is what the program runs on, in the form that releases use: linux/amd64, or
	// linux/armv7, which says more about a processor than Arch.
	Platform string `json:"platform"`
}

// Get returns what the linker was told, and what else the Go toolchain recorded.
func Get() Info {
	i := Info{
		Version: version, Commit: commit, Date: date,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	build, ok := debug.ReadBuildInfo()
	i.Platform = platform(i.OS, i.Arch, build)
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

// platform tells one 32-bit ARM from another: a program for ARMv7 ends at once on an
// older processor, and must not be offered to it. build may be nil.
func platform(system, arch string, build *debug.BuildInfo) string {
	if arch == "arm" && build != nil {
		for _, s := range build.Settings {
			if s.Key == "GOARM" { // "7", or "7,softfloat"
				number, _, _ := strings.Cut(s.Value, ",")
				arch = "armv" + number
			}
		}
	}
	return system + "/" + arch
}

package buildinfo

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestGetPrefersWhatTheLinkerWasTold(t *testing.T) {
	version, commit = "v9.8.7", "abc"
	t.Cleanup(func() { version, commit = "", "" })
	got := Get()
	if got.Version != "v9.8.7" || got.Commit != "abc" || got.Go != runtime.Version() || got.OS != runtime.GOOS {
		t.Errorf("got %+v, want the linker's version and commit", got)
	}
}

func TestGetNeverLeavesTheVersionEmpty(t *testing.T) {
	if got := Get(); got.Version == "" {
		t.Errorf("got %+v, want a version", got)
	}
}

// A 32-bit ARM program looks for the release of its own kind, and takes neither
// the 64-bit one nor one that its processor may be too old for.
func TestPlatformIsThatOfTheProcessor(t *testing.T) {
	built := func(goarm string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "arm"}, {Key: "GOARM", Value: goarm}}}
	}
	for _, tt := range []struct {
		system, arch string
		build        *debug.BuildInfo
		want         string
	}{
		{"linux", "amd64", &debug.BuildInfo{}, "linux/amd64"},
		{"darwin", "arm64", nil, "darwin/arm64"},
		{"linux", "arm64", built("7"), "linux/arm64"},
		{"linux", "arm", built("7"), "linux/armv7"},
		{"linux", "arm", built("6,softfloat"), "linux/armv6"},
		{"linux", "arm", nil, "linux/arm"},
	} {
		if got := platform(tt.system, tt.arch, tt.build); got != tt.want {
			t.Errorf("platform of %s/%s, %v: got %s, want %s", tt.system, tt.arch, tt.build, got, tt.want)
		}
	}
	if got := Get(); runtime.GOARCH != "arm" && got.Platform != got.OS+"/"+got.Arch {
		t.Errorf("got %s, want %s/%s", got.Platform, got.OS, got.Arch)
	}
}

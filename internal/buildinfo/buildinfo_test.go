package buildinfo

import (
	"runtime"
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

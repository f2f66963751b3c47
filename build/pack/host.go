package main

import (
	"cmp"
	"context"
	"os/exec"
	"runtime"
	"slices"
)

// The platform that pack runs on; programs built for it can be run.
const (
	hostOS   = runtime.GOOS
	hostArch = runtime.GOARCH
)

func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, name, args...).Output()
}

func sortContents(contents []content) {
	slices.SortFunc(contents, func(a, b content) int { return cmp.Compare(a.Dst, b.Dst) })
}

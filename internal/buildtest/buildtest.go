// Package buildtest builds programs of this module for the tests that run them.
package buildtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program builds the package pkg into file in the same way as build/pack, so that compiled packages
// are shared; more are flags of go build. It calls [Watch], which has no effect before the first
// test.
func Program(file, pkg string, more ...string) error {
	if _, err := Watch(); err != nil {
		return err
	}
	build := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", file}, more...), pkg)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// Watch makes go test rerun the calling test if any file of the module has changed, and returns the
// folders that it looked into. By itself, go test only knows the packages that a test imports and
// the files that it opens, not a program that the test builds: it would repeat the result from
// before the change. Of a folder that a test has read, it knows the names, sizes and times of the
// contents. It notices what is read from within tests, but not what a TestMain reads before them.
func Watch() (folders []string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || name == "node_modules") {
			return fs.SkipDir
		}
		folders = append(folders, path)
		return nil
	})
	return folders, err
}

// moduleRoot is the folder of go.mod: the working folder of a test is below it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = parent
	}
}

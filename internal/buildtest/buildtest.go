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

// Program builds the package pkg into file, as build/pack does, which finds it
// compiled; more are flags of go build. It calls [Watch], in vain before the first test.
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

// Watch has go test run the calling test anew once any file of the module has changed,
// and returns the folders that it looked into. By itself go test knows the packages that
// a test imports and the files that it opens, and nothing of a program that the test
// builds: it would repeat the result of the program before the change. What it knows of
// a folder that a test has read are the names, sizes and times of what is in it. It hears
// of what is read from within tests, and nothing of what a TestMain reads before them.
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

//go:build !windows

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const elevationHint = "run it with sudo, or as root"

// tellsEverybody says whether a service always writes a runtime.json that everybody can read.
const tellsEverybody = true

func elevated() bool { return os.Geteuid() == 0 }

// command runs a program of the service manager. Its error includes the program's output.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	said := strings.TrimSpace(out.String())
	if ctx.Err() != nil {
		return said, fmt.Errorf("%s %s took too long", name, strings.Join(args, " "))
	}
	if err != nil {
		return said, &commandError{name + " " + strings.Join(args, " "), said, err}
	}
	return said, nil
}

// commandError is the error of a service manager's program that failed.
type commandError struct {
	line, said string
	err        error
}

// Error returns the program's output as part of a sentence.
func (e *commandError) Error() string {
	var parts []string
	for line := range strings.Lines(e.said) {
		line = strings.TrimRight(strings.TrimSpace(line), ".")
		if line != "" && !strings.HasPrefix(line, "See ") { // systemctl's advice: ours is shorter
			parts = append(parts, line)
		}
	}
	if len(parts) == 0 {
		return e.line + ": " + e.err.Error()
	}
	return e.line + ": " + strings.Join(parts, "; ")
}

func (e *commandError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeAll removes files that may not exist.
func removeAll(files ...string) error {
	var errs []error
	for _, f := range files {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkOwner refuses a program in a place that the service may not read, or to which others than
// root may write.
func checkOwner(exe string, info fs.FileInfo) error {
	for _, dir := range []string{"/home", "/root", "/tmp", "/var/tmp", "/run/user", "/Users"} {
		if strings.HasPrefix(exe, dir+"/") {
			return fmt.Errorf("a service cannot run a program from %s: put it in place first, with sudo install -m 755 %s /usr/local/bin/adit", dir, exe)
		}
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s may be written to by others than its owner, who would get the service's rights: run chmod 755 %s first", exe, exe)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
		return fmt.Errorf("%s is not owned by root, and its owner would get the service's rights: run sudo chown root %s first", exe, exe)
	}
	return checkFolders(exe)
}

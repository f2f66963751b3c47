// Package atomicfile replaces a file so that readers see either all of the old content or all of
// the new, even if the power fails part way.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FS provides the steps of a replacement. Tests substitute a file system that stops at any of them.
type FS interface {
	CreateTemp(dir, pattern string) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
}

// File is a new file being written.
type File interface {
	io.WriteCloser
	Name() string
	Chmod(mode fs.FileMode) error
	// Sync makes the content durable.
	Sync() error
}

// Write replaces the file at path with data on the machine's own file system. The file has the
// permissions perm from its first byte.
func Write(path string, data []byte, perm fs.FileMode) error {
	return WriteTo(system{}, path, data, perm)
}

// WriteTo is like Write on another file system.
func WriteTo(fsys FS, path string, data []byte, perm fs.FileMode) (err error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := fsys.CreateTemp(dir, "."+base+".*"+suffix)
	if err != nil {
		if at := new(fs.PathError); errors.As(err, &at) { // of a name that nobody knows
			err = &fs.PathError{Op: at.Op, Path: filepath.Clean(dir), Err: at.Err}
		}
		return fmt.Errorf("replace %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = fsys.Remove(f.Name()) // only litter
			err = fmt.Errorf("replace %s: %w", path, err)
		}
	}()
	if err := f.Chmod(perm); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	// The content must be there before the name points to it.
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := fsys.Rename(f.Name(), path); err != nil {
		return err
	}
	// The replacement is made; a folder that cannot be synced (some network
	// file systems) only means that the old content may come back.
	_ = fsys.SyncDir(dir)
	return nil
}

// Sweep removes what interrupted writes of path have left, such as after a power failure: it may
// contain a secret. Nobody may be writing path at the same time.
func Sweep(path string) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // only litter
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+base+".") && strings.HasSuffix(e.Name(), suffix) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // as above
		}
	}
}

// suffix ends the name of a file that is being written.
const suffix = ".tmp"

// Rename renames a file, replacing any existing one. Like Write, it waits briefly for a virus
// scanner that has the file open.
func Rename(from, to string) error { return rename(from, to) }

type system struct{}

func (system) CreateTemp(dir, pattern string) (File, error) { return os.CreateTemp(dir, pattern) }
func (system) Rename(from, to string) error                 { return rename(from, to) }
func (system) Remove(path string) error                     { return os.Remove(path) }
func (system) SyncDir(dir string) error                     { return syncDir(dir) }

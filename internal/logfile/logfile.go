// Package logfile is a log file of bounded size, for services whose manager keeps no log. A full
// file is renamed to NAME.1, the previous NAME.1 to NAME.2 and so on; the oldest is removed.
package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// File is an open log. It is created by Open and safe for concurrent use.
type File struct {
	path string
	size int64 // of one file
	keep int   // older files

	mu      sync.Mutex
	file    *os.File // nil if the last turn found no place for a new one
	written int64
	opened  func(*os.File)
}

// Open opens the log at path and creates its folder. Each file has at most size bytes, except for a
// single longer line, and keep older files are kept. Opened, if not nil, is called with each file
// that the log is written to from then on, and with nil before such a file is renamed: other
// holders of the file must let go of it, because Windows does not rename open files.
func Open(path string, size int64, keep int, opened func(*os.File)) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the log's folder: %w", err)
	}
	f := &File{path: path, size: size, keep: keep, opened: opened}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return fmt.Errorf("open the log: %w", err)
	}
	f.file, f.written = file, info.Size()
	if f.opened != nil {
		f.opened(file)
	}
	return nil
}

// Write implements io.Writer. A line is never split across files.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil { // the turn is made: another would push the older files out
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	if f.written > 0 && f.written+int64(len(p)) > f.size {
		if err := f.turn(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(p)
	f.written += int64(n)
	return n, err
}

// turn begins a new file. Where an old one cannot be renamed, as when another
// program holds it open on Windows, it is emptied instead: a log that is full
// must not fill the disk.
func (f *File) turn() error {
	if f.opened != nil {
		f.opened(nil)
	}
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
	var errs []error
	for i := f.keep - 1; i >= 0; i-- {
		if err := os.Rename(f.old(i), f.old(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if f.keep == 0 || len(errs) > 0 {
		if err := os.Truncate(f.path, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(append(errs, err)...)
		}
	}
	return f.open()
}

func (f *File) old(i int) string {
	if i == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, i)
}

// Close closes the log.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Bound empties the file at path if it has more than size bytes. It is for files that a service
// manager writes by itself and never limits. A missing file is not an error.
func Bound(path string, size int64) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Size() <= size {
		return err
	}
	return os.Truncate(path, 0)
}

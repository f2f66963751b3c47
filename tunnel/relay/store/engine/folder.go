package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/nats-io/nats.go/jetstream"
)

// roomToStart is the minimum space that an empty store needs.
const roomToStart = 256 << 10

// folderError means that the data folder cannot be used. Trying again does not help.
type folderError struct {
	dir, fault, advice string
	err                error
}

// Error returns the system's message without the call and the file, which is one of the
// store's own.
func (e *folderError) Error() string {
	err := e.err
	var file *fs.PathError
	if errors.As(err, &file) {
		err = file.Err
	}
	return fmt.Sprintf("the data folder %s %s (%v); %s", e.dir, e.fault, err, e.advice)
}

func noRoom(dir string, err error) error {
	return &folderError{dir, "takes no more data", "make room for it", err}
}

// Final tells package bucket that trying again does not help.
func (e *folderError) Final() {}

func (e *folderError) Unwrap() error { return e.err }

// Fault returns the reason why a store could not be opened: err, or that its folder is full,
// for which the server reports only a general failure, or nothing.
func (e *Engine) Fault(err error) error {
	var failed *jetstream.APIError
	if e.server != nil && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) && failed.Code >= 500) {
		return cmp.Or(checkRoom(e.cfg.Dir), err)
	}
	return err
}

// checkRoom returns an error if nothing can be written to dir. The store's server reports only
// a general failure in that case.
func checkRoom(dir string) error {
	f, err := os.CreateTemp(dir, ".room-")
	if err != nil {
		return noRoom(dir, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, roomToStart))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return noRoom(dir, err)
	}
	return nil
}

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

// roomToStart is what an empty store needs at least.
const roomToStart = 256 << 10

// folderError is a data folder that cannot be used. Trying again does not help.
type folderError struct {
	dir, fault, advice string
	err                error
}

// Error says the system's words, but not what call on what file they are about:
// that is one of the store's own.
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

// Final says to package bucket that trying again does not help.
func (e *folderError) Final() {}

func (e *folderError) Unwrap() error { return e.err }

// Fault is why a store could not be opened: err, or that its folder takes no more data,
// of which its server says no more than that something failed, or nothing.
func (e *Engine) Fault(err error) error {
	var failed *jetstream.APIError
	if e.server != nil && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) && failed.Code >= 500) {
		return cmp.Or(checkRoom(e.cfg.Dir), err)
	}
	return err
}

// checkRoom says why nothing can be written into dir, nil if it can be. The
// store's server, which could not, has said only that something failed.
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

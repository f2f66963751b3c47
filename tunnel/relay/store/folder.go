package store

import (
	"fmt"
	"os"
)

// roomToStart is what an empty store needs at least.
const roomToStart = 256 << 10

// folderError is a data folder that takes no more bytes. Trying again does not help.
type folderError struct {
	dir string
	err error
}

func (e *folderError) Error() string {
	return fmt.Sprintf("the data folder %s takes no more data; make room for it: %v", e.dir, e.err)
}

func (e *folderError) Unwrap() error { return e.err }

// checkRoom says why nothing can be written into dir, nil if it can be. The
// store's server, which could not, has said only that something failed.
func checkRoom(dir string) error {
	f, err := os.CreateTemp(dir, ".room-")
	if err != nil {
		return &folderError{dir, err}
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, roomToStart))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return &folderError{dir, err}
	}
	return nil
}

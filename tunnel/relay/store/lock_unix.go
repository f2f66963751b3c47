//go:build unix

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

type fileLock struct{ file *os.File }

// lock takes the lock of path for this process, which ends with the process at
// the latest. It returns ErrLocked if another has it.
func lock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, err
	}
	return &fileLock{f}, nil
}

func (l *fileLock) unlock() error { return l.file.Close() }

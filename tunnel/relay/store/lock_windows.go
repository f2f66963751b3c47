package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

type fileLock struct{ file *os.File }

// lock takes the lock of path for this process, which ends with the process at
// the latest. It returns ErrLocked if another has it.
func lock(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, new(windows.Overlapped))
	if err != nil {
		f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
			return nil, ErrLocked
		}
		return nil, err
	}
	return &fileLock{f}, nil
}

func (l *fileLock) unlock() error { return l.file.Close() }

// Package lockfile prevents two processes from owning one folder. The lock belongs to the operating
// system and ends with the process, so a crash leaves nothing to clean up.
package lockfile

import (
	"errors"
	"fmt"
	"os"
)

// ErrHeld is matched by Take's error if another process, or another owner in this one, holds the
// lock.
var ErrHeld = errors.New("it is in use by another process")

// Lock is a held lock.
type Lock struct{ f *os.File }

// Take takes the lock named by path, without waiting. The file remains when the lock is released;
// it has no content.
func Take(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{f: f}, nil
}

// Release releases the lock.
func (l *Lock) Release() error { return l.f.Close() }

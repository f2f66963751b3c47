package atomicfile

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// rename replaces to. A virus scanner or an indexer that has the file open for
// a moment is waited for.
func rename(from, to string) error {
	var err error
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		err = os.Rename(from, to)
		if !errors.Is(err, windows.ERROR_ACCESS_DENIED) && !errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
			return err
		}
		time.Sleep(wait)
	}
	return err
}

// syncDir does nothing: NTFS keeps names in its journal, and a folder cannot be synced.
func syncDir(string) error { return nil }

package tray

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// ErrReplaced is matched when another program has come into the place of the
// tray's, by an update: that one is to be started instead.
var ErrReplaced = errors.New("the tray's program has been replaced")

const (
	programLook = 3 * time.Second
	// goneLimit is for how long a program may be missing: an installer may remove
	// the old one, and stop the service, before it lays the new one.
	goneLimit = 2 * time.Minute
)

// watchProgram looks after the program in file. It returns ErrReplaced once
// another has been there, unchanged, for two looks; nil if none has been for long,
// as after a removal; and the error of ctx. What cannot be looked at is not
// watched.
func watchProgram(ctx context.Context, file string) error {
	first, err := os.Stat(file)
	if err != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	var next fs.FileInfo
	var gone time.Time
	ticker := time.NewTicker(programLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		now, err := os.Stat(file)
		if !errors.Is(err, fs.ErrNotExist) {
			gone = time.Time{}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			next = nil
			if gone.IsZero() {
				gone = time.Now()
			} else if time.Since(gone) >= goneLimit {
				return nil
			}
		case err != nil || sameProgram(now, first):
			next = nil
		case next != nil && sameProgram(now, next) && readable(file):
			return ErrReplaced
		default:
			next = now
		}
	}
}

// sameProgram does not compare the files themselves: an installer may have a copy
// in the program's place meanwhile, which is no other program.
func sameProgram(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// readable reports whether nobody keeps the file to themself, as who still writes
// it does on Windows.
func readable(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

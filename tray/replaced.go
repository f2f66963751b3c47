package tray

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// ErrReplaced is matched if an update has replaced the tray's program: the new one should be
// started instead.
var ErrReplaced = errors.New("the tray's program has been replaced")

const (
	programLook = 3 * time.Second
	// Every third look is a close one, to detect a program of the same size and time, such as two
	// packages built from the same commit.
	closeLooks = 3
	// programHead is how much of a program a close look reads: what Go's linker writes there
	// differs from build to build.
	programHead = 64 << 10
	// goneLimit is how long a program may be missing: an installer may remove the old one, and stop
	// the service, before it installs the new one.
	goneLimit = 2 * time.Minute
)

// watchProgram watches the program in file. It returns ErrReplaced once a different one has been
// there, unchanged, for two looks; nil if none has been there for long, as after a removal; or
// ctx's error. A program that cannot be examined is not watched.
func watchProgram(ctx context.Context, file string) error {
	first, err := os.Stat(file)
	if err != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	head, _ := headOf(file) // empty: no close looks
	var next fs.FileInfo
	var gone time.Time
	ticker := time.NewTicker(programLook)
	defer ticker.Stop()
	for look := 1; ; look++ {
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
		case err == nil && sameProgram(now, first) && look%closeLooks == 0 && otherHead(file, head):
			return ErrReplaced
		case err != nil || sameProgram(now, first):
			next = nil
		case next != nil && sameProgram(now, next) && readable(file):
			return ErrReplaced
		default:
			next = now
		}
	}
}

// sameProgram does not compare file identity: an installer may temporarily put a copy in the
// program's place, which is the same program.
func sameProgram(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// otherHead reports whether a program's beginning differs from a known one.
func otherHead(file, known string) bool {
	head, err := headOf(file)
	return known != "" && err == nil && head != known
}

// headOf returns the SHA-256 of the beginning of a program.
func headOf(file string) (string, error) {
	f, err := openShared(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, programHead))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(head)
	return string(sum[:]), nil
}

// readable reports whether nobody has the file open exclusively, as a program that is still writing
// it does on Windows.
func readable(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

package tray

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// watchChanges watches a program while it is changed, and returns when that ended, and how.
func watchChanges(t *testing.T, changes func(file string)) (ended time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "adit")
		lay(t, file, "old", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			err = watchProgram(ctx, file)
			ended = time.Since(begin)
		}()
		synctest.Wait()
		changes(file)
		<-done
	})
	return ended, err
}

// lay writes a program as of a time.
func lay(t *testing.T, file, text string, at int64) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Unix(at, 0), time.Unix(at, 0)); err != nil {
		t.Fatal(err)
	}
}

func TestAReplacedProgramEndsTheTray(t *testing.T) {
	for name, tt := range map[string]struct {
		changes func(t *testing.T, file string)
		want    error
		after   time.Duration
	}{
		"never": {func(*testing.T, string) {}, context.DeadlineExceeded, time.Hour},
		"of another size": {func(t *testing.T, file string) {
			lay(t, file, "newer", 1)
		}, ErrReplaced, 2 * programLook},
		"of another time": {func(t *testing.T, file string) {
			lay(t, file, "new", 2)
		}, ErrReplaced, 2 * programLook},
		"of the same size and time": {func(t *testing.T, file string) {
			lay(t, file, "new", 1)
		}, ErrReplaced, closeLooks * programLook},
		"set aside for a copy of itself": {func(t *testing.T, file string) {
			if err := os.Rename(file, file+".old"); err != nil {
				t.Error(err)
			}
			lay(t, file, "old", 1)
		}, context.DeadlineExceeded, time.Hour},
		"still being written": {func(t *testing.T, file string) {
			lay(t, file, "n", 2)
			time.Sleep(programLook + time.Second)
			lay(t, file, "ne", 3)
			time.Sleep(programLook)
			lay(t, file, "new", 4)
		}, ErrReplaced, 4 * programLook},
		"missing for a while": {func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
			time.Sleep(goneLimit - programLook - time.Second)
			lay(t, file, "new", 2)
		}, ErrReplaced, goneLimit},
		"put back": {func(t *testing.T, file string) {
			lay(t, file, "new", 2)
			time.Sleep(programLook + time.Second)
			lay(t, file, "old", 1)
		}, context.DeadlineExceeded, time.Hour},
		"removed": {func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}, nil, goneLimit + programLook},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := watchChanges(t, func(file string) { tt.changes(t, file) })
			if !errors.Is(err, tt.want) || after != tt.after {
				t.Errorf("got %v after %s, want %v after %s", err, after, tt.want, tt.after)
			}
		})
	}
}

func TestAProgramThatCannotBeLookedAtIsNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := watchProgram(ctx, filepath.Join(t.TempDir(), "none")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunEndsForTheProgramThatReplacesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "adit")
		lay(t, file, "old", 1)
		s := &fakeScreen{}
		c := &companion{
			config: Config{Daemon: &fakeDaemon{events: make(chan func())}, Command: []string{file, "tray"}, Log: slog.New(slog.DiscardHandler)},
			desk:   s, screen: s, clicks: make(chan Action), words: wordsFor(nil),
		}
		done := make(chan error)
		go func() { done <- c.run(t.Context()) }()
		synctest.Wait()
		lay(t, file, "new", 2)
		if err := <-done; !errors.Is(err, ErrReplaced) {
			t.Errorf("got %v, want that the program has been replaced", err)
		}
	})
}

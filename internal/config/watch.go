package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Watcher notices changes of the file, and of the files that it names.
type Watcher struct {
	paths []string // the file's own is the first
	last  []fileStamp
}

// NewWatcher starts from the current state of the file in the configuration folder dir. Call it
// before Load, so that no change between the two is missed.
func NewWatcher(dir string) *Watcher {
	paths := []string{filepath.Join(dir, Name)}
	return &Watcher{paths: paths, last: stamps(paths)}
}

// Follow also watches the files at these paths, in place of those of an earlier call. Call it
// before they are read, and either from Run's changed or before Run.
func (w *Watcher) Follow(paths []string) {
	w.paths = append([]string{w.paths[0]}, paths...)
	w.last = append([]fileStamp{w.last[0]}, stamps(paths)...)
}

// Run calls changed when a file has appeared, changed or gone, until ctx ends. It sleeps until the
// system reports a change; if the system does not, as on network file systems, it checks at regular
// intervals. A change counts once the files have stayed the same for that interval, so that an
// editor that empties a file before writing it can finish.
func (w *Watcher) Run(ctx context.Context, every time.Duration, changed func()) error {
	for ctx.Err() == nil {
		told, stop := tell(w.paths)
		w.run(ctx, every, told, changed)
		stop()
	}
	return nil
}

// run looks after each of told, until that is closed, and from then on every so
// often. It returns when ctx ends, or when others are to be told of.
func (w *Watcher) run(ctx context.Context, every time.Duration, told <-chan struct{}, changed func()) {
	paths, seen := w.paths, w.last
	timer := time.NewTimer(every) // once in any case: it may have changed before there was anything to tell
	defer timer.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case _, ok := <-told:
			if !ok {
				told = nil
				timer.Reset(every)
			}
		case <-timer.C:
			due = true
		}
		now := stamps(paths)
		same := slices.Equal(now, seen)
		settled := due && same
		if !due && !same {
			timer.Reset(every) // and again from the newest change on
		}
		seen = now
		if settled && !slices.Equal(now, w.last) {
			w.last = now
			changed()
			if !slices.Equal(w.paths, paths) {
				return
			}
		}
		if due && (told == nil || !settled) {
			timer.Reset(every)
		}
	}
}

type fileStamp struct {
	exists      bool
	size        int64
	time, ctime time.Time
}

func stamps(paths []string) []fileStamp {
	list := make([]fileStamp, 0, len(paths))
	for _, path := range paths {
		list = append(list, stamp(path))
	}
	return list
}

func stamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{exists: true, size: info.Size(), time: info.ModTime(), ctime: ctime(info)}
}

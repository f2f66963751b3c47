package config

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Watcher notices changes of the file.
type Watcher struct {
	path string
	last fileStamp
}

// NewWatcher looks at the file in the configuration folder dir. It is called
// before Load, so that no change between the two is missed.
func NewWatcher(dir string) *Watcher {
	path := filepath.Join(dir, Name)
	return &Watcher{path: path, last: stamp(path)}
}

// Run calls changed when the file has come, changed or gone, until ctx ends. It
// sleeps until the system tells of something; where the system does not, as on
// network file systems, it looks every so often. A change counts when the file
// has stayed the same for that long: an editor that empties a file before it
// writes is let finish.
func (w *Watcher) Run(ctx context.Context, every time.Duration, changed func()) error {
	told, stop := tell(w.path)
	defer stop()
	return w.run(ctx, every, told, changed)
}

// run looks after each of told, until that is closed, and from then on every so
// often.
func (w *Watcher) run(ctx context.Context, every time.Duration, told <-chan struct{}, changed func()) error {
	seen := w.last
	timer := time.NewTimer(every) // once in any case: it may have changed before there was anything to tell
	defer timer.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-told:
			if !ok {
				told = nil
				timer.Reset(every)
			}
		case <-timer.C:
			due = true
		}
		now := stamp(w.path)
		settled := due && now == seen
		if !due && now != seen {
			timer.Reset(every) // and again from the newest change on
		}
		seen = now
		if settled && now != w.last {
			w.last = now
			changed()
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

func stamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{exists: true, size: info.Size(), time: info.ModTime(), ctime: ctime(info)}
}

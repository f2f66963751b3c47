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
// looks every so often, which also works where the system tells of no changes,
// as on network file systems. A change counts when the next look finds the file
// the same: an editor that empties a file before it writes is let finish.
func (w *Watcher) Run(ctx context.Context, every time.Duration, changed func()) error {
	seen := w.last
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := stamp(w.path)
		settled := now == seen
		seen = now
		if settled && now != w.last {
			w.last = now
			changed()
		}
	}
}

type fileStamp struct {
	exists bool
	size   int64
	time   time.Time
}

func stamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{exists: true, size: info.Size(), time: info.ModTime()}
}

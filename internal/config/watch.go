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
// as on network file systems.
func (w *Watcher) Run(ctx context.Context, every time.Duration, changed func()) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now := stamp(w.path); now != w.last {
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

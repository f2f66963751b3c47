package config

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Watch calls changed when the file in the configuration folder dir has come,
// changed or gone, until ctx ends. It looks every so often, which also works
// where the system tells of no changes, as on network file systems.
func Watch(ctx context.Context, dir string, every time.Duration, changed func()) error {
	path := filepath.Join(dir, Name)
	last := stamp(path)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now := stamp(path); now != last {
			last = now
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

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// tell has the system tell that something has happened to one of the files of those
// paths or on the way to it; stop ends that. The channel has room for one, and is
// closed when the system tells nothing, or no more.
func tell(paths []string) (told <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	w, err := fsnotify.NewWatcher()
	if err != nil { // none are left to this person, mostly
		close(ch)
		return ch, func() {}
	}
	events := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(events)
		gather(w, events)
	})
	wg.Go(func() {
		defer close(ch)
		for follow(w, paths) {
			notify(ch)
			if _, ok := <-events; !ok {
				return
			}
		}
		_ = w.Close() // nothing was written
	})
	return ch, func() { _ = w.Close(); wg.Wait() }
}

// gather makes one of all events that come together, until w is closed. It does
// nothing else: w may wait for it while it is asked to watch something.
func gather(w *fsnotify.Watcher, events chan<- struct{}) {
	for {
		select {
		case _, ok := <-w.Events:
			if !ok {
				return
			}
		case _, ok := <-w.Errors: // more events than fit, mostly: look
			if !ok {
				return
			}
		}
		notify(events)
	}
}

func notify(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default: // one is waiting, and one look answers all
	}
}

// follow has w watch what lies on the way to the files now, and nothing else, and
// reports whether the system tells of all that happens there.
func follow(w *fsnotify.Watcher, paths []string) bool {
	for way, tries := ways(paths), 0; tries < 10; tries++ {
		if !watchable(way, paths) {
			return false
		}
		for _, step := range w.WatchList() {
			if !slices.Contains(way, step) {
				_ = w.Remove(step) // it may have gone by itself
			}
		}
		gone := false
		for _, step := range way {
			switch err := w.Add(step); {
			case errors.Is(err, fs.ErrNotExist):
				gone = true
			case err != nil:
				return false
			}
		}
		// What came before it was watched is seen by looking again.
		now := ways(paths)
		if !gone && slices.Equal(now, way) {
			return true
		}
		way = now
	}
	return false
}

// watchable reports whether the system can be asked to tell of way at a fair
// price.
func watchable(way, paths []string) bool {
	if !cheap && !slices.Equal(way, []string{filepath.Dir(paths[0])}) { // others may lie among many files
		return false
	}
	return !slices.ContainsFunc(way, remote)
}

// mostLinks is how many links a path may lead through, as with the system.
const mostLinks = 40

// ways lists the steps of all paths, each once.
func ways(paths []string) []string {
	var all []string
	for _, path := range paths {
		for _, step := range steps(path) {
			if !slices.Contains(all, step) {
				all = append(all, step)
			}
		}
	}
	return all
}

// steps lists the folders in which something has to happen for the file of that
// path to change: the one that has it, or the nearest that exists; and each
// that has a link on the way to it. The file itself is one where it can be
// mounted, which its folder does not tell of.
func steps(path string) []string {
	var dirs []string
	add := func(dir string) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	links := 0
	for {
		link, target, missing := firstLink(path)
		if missing != "" {
			add(missing)
			return dirs
		}
		if link == "" {
			break
		}
		add(filepath.Dir(link))
		if links++; links > mostLinks {
			return dirs
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, path[len(link):])
	}
	add(filepath.Dir(path))
	if mountable {
		add(path)
	}
	return dirs
}

// firstLink walks path from its root and returns the first symbolic link with
// its target, or the folder in which the next step is missing.
func firstLink(path string) (link, target, missing string) {
	root := len(filepath.VolumeName(path)) + 1
	for end := root; end <= len(path); end++ {
		if end < len(path) && !os.IsPathSeparator(path[end]) {
			continue
		}
		step := path[:end]
		info, err := os.Lstat(step)
		if err != nil {
			return "", "", filepath.Dir(step)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		if target, err = os.Readlink(step); err != nil {
			return "", "", filepath.Dir(step)
		}
		return step, target, ""
	}
	return "", "", ""
}

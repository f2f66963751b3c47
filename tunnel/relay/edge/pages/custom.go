package pages

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"adit/internal/htmlpage"
)

const (
	pageAgain   = time.Second // minimum time between two checks of a file
	maxPageFile = 1 << 20

	maxPageFiles = 100 // checked when the edge starts
)

// Set is the operator's pages, which replace the built-in one. A file that changes is read
// again. If a file cannot be used, the next one or the built-in page is shown, and each
// version of the file is warned about once.
type Set struct {
	dir string // empty: none
	log *slog.Logger
	// read is readPage; tests replace it.
	read func(path string) (*htmlpage.Page, error)

	looks singleflight.Group // one check at a time per file name

	mu    sync.Mutex
	files map[string]pageFile // by name; only names chosen here are used, so there are few
}

// pageFile is what is known about a file.
type pageFile struct {
	checked time.Time // after the last check
	changed time.Time
	size    int64
	page    *htmlpage.Page // nil: no usable page
	warned  bool
}

// New returns the pages in a folder. If dir is empty, there are none.
func New(dir string, log *slog.Logger) *Set {
	return &Set{dir: dir, log: log, read: readPage, files: make(map[string]pageFile)}
}

// choose returns the page to show: the file named after the code, else the one named after the
// status, else error.html, else the built-in page.
func (c *Set) choose(p Page) *htmlpage.Page {
	if c.dir == "" {
		return builtIn
	}
	for _, name := range []string{p.code(), strconv.Itoa(p.Status), "error"} {
		if found := c.get(name + ".html"); found != nil {
			return found
		}
	}
	return builtIn
}

// Check checks all pages once, so that unusable ones are reported at the start rather than
// when the first visitor would see them.
func (c *Set) Check() {
	if c.dir == "" {
		return
	}
	files, err := os.ReadDir(c.dir)
	if err != nil {
		c.log.Warn("the pages in pages_dir cannot be listed", "error", err)
	}
	left := maxPageFiles
	for _, file := range files {
		if left > 0 && filepath.Ext(file.Name()) == ".html" {
			c.get(file.Name())
			left--
		}
	}
}

// get returns the page in a file, or nil if it has no usable one. It waits for the disk if the
// file is due to be checked, but never for a check of another file.
func (c *Set) get(name string) *htmlpage.Page {
	if f, fresh := c.known(name); fresh {
		return f.page
	}
	page, _, _ := c.looks.Do(name, func() (any, error) { // concurrent callers share one check
		f, fresh := c.known(name)
		if !fresh { // otherwise a check that has just ended did the work
			f = c.look(name, f)
			f.checked = time.Now()
			c.keep(name, f)
		}
		return f.page, nil
	})
	return page.(*htmlpage.Page)
}

// known returns what is known about a file, and whether it was checked recently.
func (c *Set) known(name string) (f pageFile, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, fresh = c.files[name]
	return f, fresh && time.Since(f.checked) < pageAgain
}

func (c *Set) keep(name string, f pageFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[name] = f
}

// look checks a file and returns what is now known about it; f is what was known before.
func (c *Set) look(name string, f pageFile) pageFile {
	path := filepath.Join(c.dir, name)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return pageFile{}
	case err != nil:
		f = f.unread()
	case info.ModTime().Equal(f.changed) && info.Size() == f.size:
		return f
	default:
		var page *htmlpage.Page
		page, err = c.read(path)
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
			f = f.unread()
		} else {
			f = pageFile{changed: info.ModTime(), size: info.Size(), page: page}
		}
	}
	if err != nil && !f.warned {
		f.warned = true
		c.log.Warn("a page in pages_dir cannot be used; visitors see the built-in one", "file", name, "error", err)
	}
	return f
}

// unread returns f for a file that could not be read for an outside reason. The file will be
// read again once that is possible, even if it has not changed.
func (f pageFile) unread() pageFile {
	return pageFile{warned: f.warned && f.changed.IsZero()} // a warning about the contents does not count
}

func readPage(path string) (*htmlpage.Page, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPageFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxPageFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxPageFile)
	}
	return htmlpage.Parse(filepath.Base(path), string(text), fields...)
}

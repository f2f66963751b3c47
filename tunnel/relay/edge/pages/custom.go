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
	pageAgain   = time.Second // at the earliest, a file is looked at again
	maxPageFile = 1 << 20

	maxPageFiles = 100 // are looked at when the edge starts
)

// Set is the operator's pages in place of the built-in one. A file that
// changes is read again; one that cannot be used leaves the next, or the built-in
// page, in force, with one warning for each of its versions.
type Set struct {
	dir string // empty: none
	log *slog.Logger
	// read is readPage; tests have it wait.
	read func(path string) (*htmlpage.Page, error)

	looks singleflight.Group // at files, by name

	mu    sync.Mutex
	files map[string]pageFile // by name; the names are ours, so they are few
}

// pageFile is what was found of a file.
type pageFile struct {
	checked time.Time // after it was looked at last
	changed time.Time
	size    int64
	page    *htmlpage.Page // nil: there is none that works
	warned  bool
}

// New returns the pages in a folder; empty: there are none.
func New(dir string, log *slog.Logger) *Set {
	return &Set{dir: dir, log: log, read: readPage, files: make(map[string]pageFile)}
}

// choose returns the page to show. The file named for the code goes before the
// one of the status, and that before error.html.
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

// Check looks at all pages once, so that a start, and not the first visitor who
// would see one, shows which cannot be used.
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

// get returns the page of a file, nil if there is none that works. It waits for the
// disk when the file is to be looked at again, and never for another file's look.
func (c *Set) get(name string) *htmlpage.Page {
	if f, fresh := c.known(name); fresh {
		return f.page
	}
	page, _, _ := c.looks.Do(name, func() (any, error) { // who asks meanwhile waits for this look
		f, fresh := c.known(name)
		if !fresh { // else one that has just ended has seen to it
			f = c.look(name, f)
			f.checked = time.Now()
			c.keep(name, f)
		}
		return f.page, nil
	})
	return page.(*htmlpage.Page)
}

// known returns what was found of a file, and whether that is not long ago.
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

// look returns what is to be known of a file that was found as f before.
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

// unread returns what is to be known of a file that could not be read, for reasons that
// are not in it: it is to be read when it can be, though it be the same.
func (f pageFile) unread() pageFile {
	return pageFile{warned: f.warned && f.changed.IsZero()} // what was wrong in it is another matter
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

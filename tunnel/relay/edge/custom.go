package edge

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

	"adit/internal/htmlpage"
)

const (
	pageAgain   = time.Second // at the earliest, a file is looked at again
	maxPageFile = 1 << 20

	maxPageFiles = 100 // are looked at when the edge starts
)

// customPages are the operator's pages in place of the built-in one. A file that
// changes is read again; one that cannot be used leaves the next, or the built-in
// page, in force, with one warning for each of its versions.
type customPages struct {
	dir string // empty: none
	log *slog.Logger

	mu    sync.Mutex
	files map[string]*pageFile // by name; the names are ours, so they are few
}

type pageFile struct {
	checked time.Time
	changed time.Time
	size    int64
	page    *htmlpage.Page // nil: there is none that works
	warned  bool
}

// choose returns the page to show. The file named for the code goes before the
// one of the status, and that before error.html.
func (c *customPages) choose(p page) *htmlpage.Page {
	if c.dir == "" {
		return builtIn
	}
	for _, name := range []string{p.code(), strconv.Itoa(p.status), "error"} {
		if found := c.get(name + ".html"); found != nil {
			return found
		}
	}
	return builtIn
}

// check looks at all pages once, so that a start, and not the first visitor who
// would see one, shows which cannot be used.
func (c *customPages) check() {
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

func (c *customPages) get(name string) *htmlpage.Page {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, now := c.files[name], time.Now()
	if f == nil {
		f = &pageFile{}
		if c.files == nil {
			c.files = make(map[string]*pageFile)
		}
		c.files[name] = f
	} else if now.Sub(f.checked) < pageAgain {
		return f.page
	}
	f.checked = now
	path := filepath.Join(c.dir, name)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	if errors.Is(err, fs.ErrNotExist) {
		*f = pageFile{checked: now}
		return nil
	}
	if err == nil && info.ModTime().Equal(f.changed) && info.Size() == f.size {
		return f.page
	}
	if err == nil {
		f.changed, f.size, f.warned = info.ModTime(), info.Size(), false
		f.page, err = readPage(path)
	} else {
		f.page = nil
	}
	if err != nil && !f.warned {
		f.warned = true
		c.log.Warn("a page in pages_dir cannot be used; visitors see the built-in one", "file", name, "error", err)
	}
	return f.page
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

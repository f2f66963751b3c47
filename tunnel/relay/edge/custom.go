package edge

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	pageAgain   = time.Second // at the earliest, a file is looked at again
	maxPageFile = 1 << 20
)

// shown is what a page's template gets.
type shown struct{ Status, Code, Title, Text, Host string }

// customPages are the operator's templates in place of the built-in page. A
// file that changes is read again; one that cannot be used leaves the built-in
// page in force, with one warning for each of its versions.
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
	page    *template.Template // nil: there is none that works
	warned  bool
}

// render returns the operator's page, or nil for the built-in one. The file
// named for the code goes before the one of the status, and that before error.html.
func (c *customPages) render(p page, host string) []byte {
	if c.dir == "" {
		return nil
	}
	status := strconv.Itoa(p.status)
	for _, name := range []string{p.code(), status, "error"} {
		t := c.get(name + ".html")
		if t == nil {
			continue
		}
		var b bytes.Buffer
		if err := t.Execute(&b, shown{status, p.code(), p.title, p.text, host}); err != nil {
			c.warn(name+".html", err)
			continue
		}
		return b.Bytes()
	}
	return nil
}

func (c *customPages) get(name string) *template.Template {
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

// warn says that a page did not render, once for each version of it.
func (c *customPages) warn(name string, err error) {
	c.mu.Lock()
	f := c.files[name]
	first := f != nil && !f.warned
	if first {
		f.warned = true
	}
	c.mu.Unlock()
	if first {
		c.log.Warn("a page in pages_dir cannot be used; visitors see the built-in one", "file", name, "error", err)
	}
}

func readPage(path string) (*template.Template, error) {
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
	return template.New(filepath.Base(path)).Parse(string(text))
}

// Package folder serves a folder of this machine over HTTP, read-only: its files, with ranges and
// dates, and a listing for folders without an index.html. Nothing outside the folder can be
// reached, not even through a symbolic link, and hidden files do not exist for visitors.
package folder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// Options say how to serve a folder. The zero value serves it to everybody.
type Options struct {
	// Hidden also serves files and folders whose names begin with a dot.
	Hidden bool
	// Password is required from visitors, by basic authentication with any user name. If empty,
	// none is required.
	Password string
}

// Folder is an http.Handler for the folder at a path. Each request opens it again, so if a build
// removes its folder and creates another, the new one is served.
type Folder struct {
	dir    string // as far as can be, from the file system's root
	name   string // for people
	hidden bool
	gate   *gate // nil without a password
}

// New returns the Folder at dir, which must exist and be readable.
func New(dir string, opts Options) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	_ = root.Close() // it was only looked at
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	f := &Folder{dir: dir, name: filepath.Base(dir), hidden: opts.Hidden}
	if opts.Password != "" {
		f.gate = newGate(opts.Password)
	}
	return f, nil
}

// Name is the last element of the folder's path.
func (f *Folder) Name() string { return f.name }

// indexFile is served in place of the folder that it is in.
const indexFile = "index.html"

func (f *Folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache") // files change while they are shared
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "This folder can only be read.", http.StatusMethodNotAllowed)
		return
	}
	if f.gate != nil {
		switch f.gate.judge(r) {
		case admitted:
		case tooMany:
			h.Set("Retry-After", "6")
			http.Error(w, "Too many wrong passwords came from your address. Try again in a moment.", http.StatusTooManyRequests)
			return
		default:
			h.Set("WWW-Authenticate", `Basic realm="A shared folder", charset="UTF-8"`)
			http.Error(w, "A password is needed.", http.StatusUnauthorized)
			return
		}
	}
	switch err := f.answer(w, r); {
	case err == nil:
	case errors.Is(err, fs.ErrPermission):
		http.Error(w, "This cannot be read by who shares it.", http.StatusForbidden)
	case busy(err):
		h.Set("Retry-After", "5")
		http.Error(w, "The machine that shares this has too much to do. Try again in a moment.", http.StatusServiceUnavailable)
	case broken(err):
		http.Error(w, "This cannot be read: the disk or the file system that it is on has an error.", http.StatusInternalServerError)
	default:
		http.Error(w, "There is nothing at this address.", http.StatusNotFound)
	}
}

// busy reports whether the system had no room for another open file: what was asked
// for may be there all the same.
func busy(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// broken reports whether the file system could not say what is there.
func broken(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ESTALE) || errors.Is(err, syscall.ETIMEDOUT)
}

// answer answers with what a request asks for. Nothing is answered yet if it returns
// an error.
func (f *Folder) answer(w http.ResponseWriter, r *http.Request) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	o := opened{f, root}
	name, err := o.local(r.URL.Path)
	if err != nil {
		return err
	}
	return o.serve(w, r, name)
}

// opened is a Folder as one request finds it.
type opened struct {
	*Folder

	root *os.Root
}

// local is where in the folder a request's path is, in the system's own form.
func (f opened) local(requested string) (string, error) {
	name := strings.Trim(path.Clean("/"+requested), "/")
	if name == "" {
		return ".", nil
	}
	for at := 0; at < len(name); {
		part, _, _ := strings.Cut(name[at:], "/")
		if hiddenName(part) && !f.hidden {
			return "", fs.ErrNotExist
		}
		if strings.Contains(part, "~") {
			if err := f.has(cmp.Or(strings.TrimSuffix(name[:at], "/"), "."), part); err != nil {
				return "", err
			}
		}
		at += len(part) + len("/")
	}
	return localize(name)
}

// localize is filepath.Localize for names that need not be Unicode, which those of
// old archives are not.
func localize(name string) (string, error) {
	if _, err := filepath.Localize(strings.ToValidUTF8(name, "_")); err != nil {
		return "", err
	}
	return filepath.FromSlash(name), nil
}

// hiddenName reports whether a name begins with a dot, also behind characters
// that nobody sees: some file systems leave those out of names.
func hiddenName(name string) bool {
	return strings.HasPrefix(strings.TrimLeftFunc(name, func(c rune) bool { return unicode.Is(unicode.Cf, c) }), ".")
}

// has says that a folder has nothing of exactly that name, but maybe of a longer one
// that Windows has a short form of, as GIT~1 of .git.
func (f opened) has(parent, name string) error {
	local, err := localize(parent)
	if err != nil {
		return err
	}
	dir, err := f.root.Open(local)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(1000)
		switch {
		case slices.Contains(names, name):
			return nil
		case errors.Is(err, io.EOF) || err == nil && len(names) == 0:
			return fs.ErrNotExist
		case err != nil:
			return err
		}
	}
}

// serve answers with a file or a folder, as answer does.
func (f opened) serve(w http.ResponseWriter, r *http.Request, name string) error {
	info, err := f.root.Stat(name)
	if err != nil {
		return err
	}
	slash := strings.HasSuffix(r.URL.Path, "/")
	switch {
	case info.IsDir() && !slash:
		redirect(w, r, path.Base(r.URL.Path)+"/")
		return nil
	case info.IsDir():
		err := f.serveFile(w, r, filepath.Join(name, indexFile))
		if errors.Is(err, errNoFile) || errors.Is(err, fs.ErrNotExist) {
			return f.list(w, r, name)
		}
		return err
	case slash:
		redirect(w, r, "../"+path.Base(r.URL.Path))
		return nil
	}
	return f.serveFile(w, r, name)
}

// redirect sends a visitor to a path beside the one that was asked for, which
// stays on this site whatever it looks like.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	if !strings.HasPrefix(to, "../") {
		to = "./" + to
	}
	w.Header().Set("Location", (&url.URL{Path: to, RawQuery: r.URL.RawQuery}).String())
	w.WriteHeader(http.StatusMovedPermanently)
}

var errNoFile = errors.New("not a file")

// serveFile answers with a file. A pipe or a device, whose opening may last for
// ever, is none.
func (f opened) serveFile(w http.ResponseWriter, r *http.Request, name string) error {
	info, err := f.root.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errNoFile
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|largeFile, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_ = f.root.Close() // to read the file may last
	if info, err = file.Stat(); err != nil {
		return fmt.Errorf("look at %s: %w", name, err)
	}
	w.Header().Set("ETag", `"`+strconv.FormatInt(info.ModTime().UnixNano(), 36)+"-"+strconv.FormatInt(info.Size(), 36)+`"`)
	http.ServeContent(w, r, info.Name(), info.ModTime(), file)
	return nil
}

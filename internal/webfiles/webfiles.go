// Package webfiles serves a built web page. Its files are read once, compressed when a browser
// first asks for that, and looked up by their full path, so no request can reach anything else.
package webfiles

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// maxTotal bounds what is read of one file system.
const maxTotal = 32 << 20

// Files are the files of a page by their paths, such as "/index.html".
type Files struct{ files map[string]*file }

type file struct {
	kind    string // media type
	etag    string
	plain   []byte
	zipped  func() []byte // nil if it is of a kind that does not get smaller; returns nil if this one does not
	forever bool          // its name changes with its content
}

// Read reads all files of the file systems; later ones override earlier ones. A nil file system is
// empty.
func Read(from ...fs.FS) (*Files, error) {
	s := &Files{files: make(map[string]*file)}
	for _, f := range from {
		if f == nil {
			continue
		}
		if err := s.read(f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Files) read(from fs.FS) error {
	total := 0
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if errors.Is(err, fs.ErrNotExist) && name == "." {
				return nil // not built
			}
			return err
		}
		b, err := fs.ReadFile(from, name)
		if err != nil {
			return fmt.Errorf("read the web page: %w", err)
		}
		if total += len(b); total > maxTotal {
			return fmt.Errorf("read the web page: it is over %d bytes", maxTotal)
		}
		sum := sha256.Sum256(b)
		f := &file{
			kind:    mediaType(name),
			etag:    `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
			plain:   b,
			forever: strings.HasPrefix(name, "assets/"),
		}
		if compressible(f.kind) {
			// Not now: few starts are followed by a browser.
			f.zipped = sync.OnceValue(func() []byte { return zip(b) })
		}
		s.files["/"+name] = f
		return nil
	})
}

// Has reports whether there is a file at a path.
func (s *Files) Has(path string) bool { return s.files[path] != nil }

// Alias also serves what is at a path at another path; if there is nothing, neither has anything.
func (s *Files) Alias(path, target string) {
	if f := s.files[target]; f != nil {
		s.files[path] = f
	}
}

// Drop removes a path.
func (s *Files) Drop(path string) { delete(s.files, path) }

// Page returns the path to serve for a request: its own, or "/" for a path made by the page that a
// person has reloaded; "" if neither exists.
func (s *Files) Page(r *http.Request) string {
	if s.Has(r.URL.Path) {
		return r.URL.Path
	}
	if path.Ext(r.URL.Path) == "" && strings.Contains(r.Header.Get("Accept"), "text/html") && s.Has("/") {
		return "/"
	}
	return ""
}

// Serve answers a GET or HEAD with the file at a path, which must exist.
func (s *Files) Serve(w http.ResponseWriter, r *http.Request, path string) {
	f := s.files[path]
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Etag", f.etag)
	h.Set("Cache-Control", "no-cache")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := f.plain
	if f.zipped != nil {
		h.Add("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			if zipped := f.zipped(); zipped != nil {
				h.Set("Content-Encoding", "gzip")
				h.Set("Etag", strings.TrimSuffix(f.etag, `"`)+`-gz"`)
				body = zipped
			}
		}
	}
	if r.Header.Get("If-None-Match") == h.Get("Etag") {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// mediaType goes by the name's ending. The system's own table is left out of it:
// on some machines it serves scripts as text.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

func compressible(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasPrefix(kind, "application/") || kind == "image/svg+xml"
}

// zip returns b compressed, or nil if that is not smaller.
func zip(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is a valid one
	_, _ = z.Write(b)                                       // a bytes.Buffer takes all
	_ = z.Close()
	if out.Len() >= len(b) {
		return nil
	}
	return out.Bytes()
}

// acceptsGzip reports whether gzip is among the listed encodings and not at q=0.
func acceptsGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, weight, ok := strings.Cut(q, "=")
			n, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return !ok || err == nil && n > 0
		}
	}
	return false
}

package localapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed pages
var pages embed.FS

// maxFrontend bounds what is read of a Web UI.
const maxFrontend = 32 << 20

// static is the Web UI, read once: a request is looked up among what is there,
// so no path leads anywhere else.
type static struct{ files map[string]*file }

type file struct {
	kind    string // media type
	etag    string
	plain   []byte
	zipped  []byte // nil if that is not smaller
	forever bool   // its name changes with its content
}

// newStatic reads frontend, and adds the pages for signing in.
func newStatic(frontend fs.FS) (*static, error) {
	s := &static{files: make(map[string]*file)}
	own, err := fs.Sub(pages, "pages")
	if err != nil {
		return nil, fmt.Errorf("read the built-in pages: %w", err)
	}
	if err := s.read(own); err != nil {
		return nil, err
	}
	if frontend != nil {
		if err := s.read(frontend); err != nil {
			return nil, err
		}
	}
	if s.files["/index.html"] == nil {
		s.files["/index.html"] = s.files["/missing.html"]
	}
	delete(s.files, "/missing.html")
	s.files["/"] = s.files["/index.html"]
	s.files["/login"] = s.files["/login.html"]
	return s, nil
}

func (s *static) read(from fs.FS) error {
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
		if total += len(b); total > maxFrontend {
			return fmt.Errorf("read the web page: it is over %d bytes", maxFrontend)
		}
		sum := sha256.Sum256(b)
		f := &file{
			kind:    mediaType(name),
			etag:    `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
			plain:   b,
			forever: strings.HasPrefix(name, "assets/"),
		}
		if compressible(f.kind) {
			if zipped := zip(b); len(zipped) < len(b) {
				f.zipped = zipped
			}
		}
		s.files["/"+name] = f
		return nil
	})
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

func zip(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is a valid one
	_, _ = z.Write(b)                                       // a bytes.Buffer takes all
	_ = z.Close()
	return out.Bytes()
}

// serve answers with a file, or with the page itself for a path of its own
// making that a person has reloaded.
func (s *static) serve(w http.ResponseWriter, r *http.Request) error {
	f := s.files[r.URL.Path]
	if f == nil && path.Ext(r.URL.Path) == "" && strings.Contains(r.Header.Get("Accept"), "text/html") {
		f = s.files["/"]
	}
	if f == nil {
		return notFound("such page here")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return methodNotAllowed(w, r)
	}
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
			h.Set("Content-Encoding", "gzip")
			h.Set("Etag", strings.TrimSuffix(f.etag, `"`)+`-gz"`)
			body = f.zipped
		}
	}
	if r.Header.Get("If-None-Match") == h.Get("Etag") {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
	return nil
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

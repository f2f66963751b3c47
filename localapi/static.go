package localapi

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"

	"adit/internal/webfiles"
)

//go:embed pages
var pages embed.FS

// static serves the Web UI and the sign-in pages.
type static struct{ files *webfiles.Files }

// newStatic reads frontend, and adds the sign-in pages.
func newStatic(frontend fs.FS) (*static, error) {
	own, err := fs.Sub(pages, "pages")
	if err != nil {
		return nil, fmt.Errorf("read the built-in pages: %w", err)
	}
	files, err := webfiles.Read(own, frontend)
	if err != nil {
		return nil, err
	}
	if !files.Has("/index.html") {
		files.Alias("/index.html", "/missing.html")
	}
	files.Drop("/missing.html")
	files.Alias("/", "/index.html")
	files.Alias("/login", "/login.html")
	return &static{files}, nil
}

// serve answers with a file, or with the page itself for a path made by the page that a person has
// reloaded.
func (s *static) serve(w http.ResponseWriter, r *http.Request) error {
	path := s.files.Page(r)
	if path == "" {
		return notFound("such page here")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return methodNotAllowed(w, r)
	}
	s.files.Serve(w, r, path)
	return nil
}

package webfiles

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// TestFilesAreCompressedWhenAskedFor has many browsers ask first for the same
// file: each gets all of it, as it asked. What does not get smaller stays as it is.
func TestFilesAreCompressedWhenAskedFor(t *testing.T) {
	long := strings.Repeat("a page that says the same again and again\n", 1000)
	files, err := Read(fstest.MapFS{"index.html": {Data: []byte(long)}, "short.txt": {Data: []byte("short")}, "a.png": {Data: []byte(long)}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path, accept string) error {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", accept)
		files.Serve(w, r, path)
		want := map[string]string{"/short.txt": "short"}[path]
		if want == "" {
			want = long
		}
		zips := accept == "gzip" && path == "/index.html"
		var body io.Reader = w.Body
		if zips {
			if w.Body.Len() >= len(long) {
				return fmt.Errorf("%d bytes of %d were sent", w.Body.Len(), len(long))
			}
			unzipped, err := gzip.NewReader(body)
			if err != nil {
				return err
			}
			body = unzipped
		}
		got, err := io.ReadAll(body)
		if encoded := w.Header().Get("Content-Encoding") == "gzip"; err != nil || string(got) != want || encoded != zips {
			return fmt.Errorf("got %d bytes (%v), gzip %v, want %d, %v", len(got), err, encoded, len(want), zips)
		}
		if varies := w.Header().Get("Vary") != ""; varies != (path != "/a.png") {
			return fmt.Errorf("Vary is %q", w.Header().Get("Vary"))
		}
		return nil
	}
	var asking sync.WaitGroup
	for range 20 {
		for _, path := range []string{"/index.html", "/short.txt", "/a.png"} {
			for _, accept := range []string{"gzip", "identity"} {
				asking.Go(func() {
					if err := ask(path, accept); err != nil {
						t.Errorf("%s by %s: %v", path, accept, err)
					}
				})
			}
		}
	}
	asking.Wait()
}

package folder

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestLargeFilesAreServed, on 32-bit systems too, where it fails if opening asks for
// too little: GOARCH=386 runs it on an x86-64 kernel.
func TestLargeFilesAreServed(t *testing.T) {
	f := shared(t, Options{})
	file, err := os.Create(filepath.Join(f.dir, "film"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 5 << 30
	if _, err := file.WriteAt([]byte("end"), size-3); err != nil { // the rest takes no room
		t.Fatal(err)
	}
	resp := ask(f, "HEAD", "/film")
	if resp.StatusCode != 200 || resp.ContentLength != size {
		t.Errorf("got status %d, %d bytes; want 200, %d", resp.StatusCode, resp.ContentLength, int64(size))
	}
	for _, asked := range []string{"-3", "5368709117-", "5368709117-5368709119"} {
		resp := ask(f, "GET", "/film", func(r *http.Request) { r.Header.Set("Range", "bytes="+asked) })
		if got := bodyOf(t, resp); resp.StatusCode != 206 || got != "end" || resp.Header.Get("Content-Range") != "bytes 5368709117-5368709119/5368709120" {
			t.Errorf("range %s: got status %d, %q, %s", asked, resp.StatusCode, got, resp.Header.Get("Content-Range"))
		}
	}
}

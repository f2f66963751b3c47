package folder

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// shared is a folder with one of everything, and a secret beside it.
func shared(t *testing.T, opts Options) *Folder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "photos")
	for name, text := range map[string]string{
		"a.txt": "hello", "b 2?#%.txt": "odd", "<b>.txt": "markup", "site/index.html": "<p>index", "site/x.css": "p{}",
		".env": "secret", ".git/config": "secret", "deep/.hidden/a.txt": "secret", "deep/10.txt": "", "deep/9.txt": "",
		"c:d/e.txt": "colon", "backup~1": "tilde", "../outside.txt": "secret",
		"evil.example/a.txt": "", "zero/\u200c.git": "secret",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := New(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func link(t *testing.T, f *Folder, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
		t.Skip("links cannot be made:", err)
	}
}

func ask(f http.Handler, method, target string, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFilesAndFolders(t *testing.T) {
	f := shared(t, Options{})
	link(t, f, "a.txt", "link.txt")
	for _, c := range []struct {
		target string
		status int
		want   string // the body, or where to
	}{
		{"/a.txt", 200, "hello"},
		{"/link.txt", 200, "hello"},
		{"/b%202%3F%23%25.txt", 200, "odd"},
		{"/site/", 200, "<p>index"},
		{"/site/index.html", 200, "<p>index"},
		{"/site/x.css", 200, "p{}"},
		{"/c:d/e.txt", 200, "colon"},
		{"/backup~1", 200, "tilde"},
		{"/site", 301, "./site/"},
		{"/site?a=b", 301, "./site/?a=b"},
		{"/c:d", 301, "./c:d/"},
		{"//evil.example", 301, "./evil.example/"},
		{"/a.txt/", 301, "../a.txt"},
		{"/deep/9.txt/", 301, "../9.txt"},
		{"/none", 404, ""},
		{"/none/", 404, ""},
		{"/a.txt/b", 404, ""},
	} {
		resp := ask(f, "GET", c.target)
		got := resp.Header.Get("Location")
		if c.status == 200 {
			got = bodyOf(t, resp)
		}
		if resp.StatusCode != c.status || got != c.want {
			t.Errorf("%s: got %d %q, want %d %q", c.target, resp.StatusCode, got, c.status, c.want)
		}
	}
}

func TestNothingOutsideOrHiddenIsServed(t *testing.T) {
	f := shared(t, Options{})
	link(t, f, "../outside.txt", "out.txt")
	link(t, f, "..", "up")
	targets := []string{
		"/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "/site/../../outside.txt", "/..\\outside.txt",
		"/out.txt", "/up/outside.txt", "/up/", "/.env", "/.git/config", "/.git/", "/.git", "/deep/.hidden/a.txt",
		"/zero/%E2%80%8C.git", "/GIT~1/config", "/a.txt%00", "/%00",
	}
	for _, target := range targets {
		resp := ask(f, "GET", "/", func(r *http.Request) {
			u, err := r.URL.Parse("http://shop.example" + target)
			if err != nil {
				t.Fatal(err)
			}
			r.URL = u
		})
		if body := bodyOf(t, resp); resp.StatusCode != 404 || strings.Contains(body, "secret") {
			t.Errorf("%s: got %d %q, want 404", target, resp.StatusCode, body)
		}
	}
	for _, place := range []string{"/", "/deep/", "/zero/"} {
		body := bodyOf(t, ask(f, "GET", place))
		for _, name := range []string{".env", ".git", ".hidden", "outside", "out.txt", `"./up`} {
			if strings.Contains(body, name) {
				t.Errorf("the list of %s has %s:\n%s", place, name, body)
			}
		}
	}
	if resp := ask(shared(t, Options{Hidden: true}), "GET", "/.env"); resp.StatusCode != 200 || bodyOf(t, resp) != "secret" {
		t.Errorf("a hidden file that shall be served: got %d", resp.StatusCode)
	}
}

func TestListShowsNamesInOrderAndNoMarkup(t *testing.T) {
	f := shared(t, Options{})
	body := bodyOf(t, ask(f, "GET", "/"))
	last := -1
	for _, part := range []string{
		"<title>photos</title>", `<a href="./c:d/">c:d/</a>`, `<a href="./deep/">`, `<a href="./empty/">`, `<a href="./site/">`,
		`<a href="./%3Cb%3E.txt">&lt;b&gt;.txt</a>`, `<a href="./a.txt">a.txt</a></td><td>5 B</td>`, `<a href="./b%202%3F%23%25.txt">b 2?#%.txt</a>`,
	} {
		at := strings.Index(body, part)
		if at <= last {
			t.Errorf("%s is missing or out of order in\n%s", part, body)
		}
		last = at
	}
	if body := bodyOf(t, ask(f, "GET", "/deep/")); strings.Index(body, "9.txt") > strings.Index(body, "10.txt") || !strings.Contains(body, "<h1>photos/deep</h1>") || !strings.Contains(body, `href="../"`) {
		t.Errorf("got\n%s\nwant 9 before 10, the path, and the way up", body)
	}
	if resp := ask(f, "HEAD", "/"); resp.StatusCode != 200 || bodyOf(t, resp) != "" {
		t.Errorf("HEAD: got %d with a body", resp.StatusCode)
	}
}

func TestLongListIsCut(t *testing.T) {
	f := shared(t, Options{})
	for i := range maxListed + 1 {
		if err := os.WriteFile(filepath.Join(f.dir, "empty", fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	body := bodyOf(t, ask(f, "GET", "/empty/"))
	if got := strings.Count(body, "<tr><td><a href=\"./"); got != maxListed || !strings.Contains(body, "There is more in this folder") {
		t.Errorf("got %d names, want %d and that there are more", got, maxListed)
	}
}

func TestPartsAndChangesOfAFile(t *testing.T) {
	f := shared(t, Options{})
	first := ask(f, "GET", "/a.txt", func(r *http.Request) { r.Header.Set("Range", "bytes=1-2") })
	if body := bodyOf(t, first); first.StatusCode != 206 || body != "el" {
		t.Errorf("a part: got %d %q, want 206 and el", first.StatusCode, body)
	}
	etag := first.Header.Get("ETag")
	known := func(r *http.Request) { r.Header.Set("If-None-Match", etag) }
	if resp := ask(f, "GET", "/a.txt", known); resp.StatusCode != 304 {
		t.Errorf("what is known already: got %d, want 304", resp.StatusCode)
	}
	path := filepath.Join(f.dir, "a.txt")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// Within the second that Last-Modified can tell, and of the same length.
	if err := os.Chtimes(path, time.Time{}, info.ModTime().Truncate(time.Second).Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if resp := ask(f, "GET", "/a.txt", known); resp.StatusCode != 200 {
		t.Errorf("what has changed: got %d, want 200", resp.StatusCode)
	}
}

func TestOnlyReading(t *testing.T) {
	f := shared(t, Options{})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"} {
		if resp := ask(f, method, "/a.txt"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: got %d, want 405", method, resp.StatusCode)
		}
	}
}

func TestNewSaysWhatIsNoFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := New(filepath.Join(dir, "none"), Options{}); err == nil {
		t.Error("a folder that is not there was opened")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(file, Options{}); err == nil {
		t.Error("a file was opened as a folder")
	}
}

// TestFolderThatIsReplacedIsServed: a build removes its folder and makes it anew.
func TestFolderThatIsReplacedIsServed(t *testing.T) {
	f := shared(t, Options{})
	if err := os.Rename(f.dir, f.dir+".old"); err != nil {
		t.Fatal(err)
	}
	if resp := ask(f, "GET", "/a.txt"); resp.StatusCode != 404 {
		t.Errorf("without the folder: got %d, want 404", resp.StatusCode)
	}
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "a.txt"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if body := bodyOf(t, ask(f, "GET", "/a.txt")); body != "new" {
		t.Errorf("got %q, want the file of the new folder", body)
	}
	if body := bodyOf(t, ask(f, "GET", "/")); strings.Contains(body, "site") || !strings.Contains(body, "a.txt") {
		t.Errorf("got %s, want the list of the new folder", body)
	}
}

// TestNamesThatAreNotUnicodeAreServed: what a list shows can be read, as names from
// old archives.
func TestNamesThatAreNotUnicodeAreServed(t *testing.T) {
	f := shared(t, Options{})
	for _, name := range []string{"caf\xe9.txt", "caf\xe9~1", "d\xe9/a.txt"} {
		path := filepath.Join(f.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Skip("there can be no such names here:", err)
		}
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Skip("there can be no such names here:", err)
		}
	}
	for _, target := range []string{"/caf%E9.txt", "/caf%E9~1", "/d%E9/a.txt"} {
		if resp := ask(f, "GET", target); resp.StatusCode != 200 || bodyOf(t, resp) != "old" {
			t.Errorf("%s: got %d, want the file", target, resp.StatusCode)
		}
	}
	if body := bodyOf(t, ask(f, "GET", "/")); !strings.Contains(body, `"./caf%E9.txt"`) {
		t.Errorf("got %s, want it listed", body)
	}
}

// TestLongPathsCostLittle: the work for a path must not rise with the square of its
// parts, of which a request has room for tens of thousands.
func TestLongPathsCostLittle(t *testing.T) {
	f := shared(t, Options{})
	target := "/" + strings.Repeat("a/", 30_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if resp := ask(f, "GET", target); resp.StatusCode != 404 {
		t.Errorf("got %d, want 404", resp.StatusCode)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("a path of %d bytes takes %d", len(target), used)
	}
}

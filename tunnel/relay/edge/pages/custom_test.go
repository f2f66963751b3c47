package pages

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/htmlpage"
)

func TestPagesAreLookedAtBeforeAVisitorComes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("404.html", "<h1>{{.Title}}</h1>\n{{if .Text}}<p>{{.Text}}</p>{{end}}")
	write("offline.html", "<a href=\"{{.Host}}\">")
	write("error.html", "all: {{.Code}}")
	write("notes.txt", "{{if")
	if err := os.Mkdir(filepath.Join(dir, "503.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	c := New(dir, slog.New(slog.NewTextHandler(&log, nil)))
	c.Check()
	for _, want := range []string{
		"404.html:2: {{if .Text}} is not allowed; allowed are {{.Status}}, {{.Code}}, {{.Title}}, {{.Text}}, {{.Host}}",
		"offline.html:1: {{.Host}} is in an attribute that may hold more than text",
		"it is not a file",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("not in the log: %s\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("%d lines, want 3:\n%s", n, log.String())
	}
	if got := string(c.choose(Page{Status: 404}).Render(Page{Status: 404}.values("x"))); got != "all: not_found" {
		t.Errorf("the next page is not used: %s", got)
	}
	c.Check()
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("said again:\n%s", log.String())
	}
}

func TestFolderOfPagesThatIsGoneIsSaid(t *testing.T) {
	var log bytes.Buffer
	c := New(filepath.Join(t.TempDir(), "none"), slog.New(slog.NewTextHandler(&log, nil)))
	c.Check()
	if !strings.Contains(log.String(), "cannot be listed") {
		t.Errorf("got %s", log.String())
	}
	if c.choose(Page{Status: 404}) != builtIn {
		t.Error("not the built-in page")
	}
}

func TestOnlySoManyPagesAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	for i := range maxPageFiles + 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.html", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := New(dir, slog.New(slog.DiscardHandler))
	c.Check()
	if len(c.files) != maxPageFiles {
		t.Errorf("looked at %d", len(c.files))
	}
}

// TestSlowPageHoldsUpNoOther has the disk respond slowly for one page, which several visitors
// request.
func TestSlowPageHoldsUpNoOther(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"404.html", "503.html"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := New(dir, slog.New(slog.DiscardHandler))
		goOn, reads := make(chan struct{}), make(chan string, 100)
		c.read = func(path string) (*htmlpage.Page, error) {
			reads <- filepath.Base(path)
			if filepath.Base(path) == "404.html" {
				<-goOn
			}
			return readPage(path)
		}
		got := make(chan *htmlpage.Page, 4)
		for range cap(got) {
			go func() { got <- c.get("404.html") }()
		}
		synctest.Wait()
		if c.get("503.html") == nil {
			t.Error("the other page is not found")
		}
		if len(got) > 0 {
			t.Error("a visitor did not wait for the page")
		}
		close(goOn)
		first := <-got
		for range cap(got) - 1 {
			if next := <-got; next == nil || next != first {
				t.Error("visitors who asked at once got different pages")
			}
		}
		if one, other := <-reads, <-reads; one != "404.html" || other != "503.html" || len(reads) > 0 {
			t.Errorf("read %s, %s and %d more, want each once", one, other, len(reads))
		}
	})
}

// TestPageThatWasAwayIsUsedAgain replaces a file for a while and then restores it unchanged.
func TestPageThatWasAwayIsUsedAgain(t *testing.T) {
	dir := t.TempDir()
	path, away := filepath.Join(dir, "404.html"), filepath.Join(dir, "away")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(path, []byte("own"), 0o644))
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := New(dir, slog.New(slog.NewTextHandler(&log, nil)))
		if c.get("404.html") == nil {
			t.Fatal("the page is not found")
		}
		must(os.Rename(path, away))
		must(os.Mkdir(path, 0o755))
		for range 2 {
			time.Sleep(pageAgain)
			if c.get("404.html") != nil {
				t.Error("a page is found where a folder is")
			}
		}
		must(os.Remove(path))
		must(os.Rename(away, path))
		time.Sleep(pageAgain)
		if c.get("404.html") == nil {
			t.Error("the page is not found again")
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d lines, want 1:\n%s", n, log.String())
		}
	})
}

// TestPageThatCouldNotBeReadIsTriedAgain makes a read fail for a reason outside the file, such
// as too many open files or missing permissions. The file does not change when that is over.
func TestPageThatCouldNotBeReadIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "404.html")
	if err := os.WriteFile(path, []byte("{{if"), 0o644); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := New(dir, slog.New(slog.NewTextHandler(&log, nil)))
		if c.get("404.html") != nil {
			t.Fatal("a page is made of what is none")
		}
		if err := os.WriteFile(path, []byte("own page"), 0o644); err != nil {
			t.Fatal(err)
		}
		read := c.read
		c.read = func(path string) (*htmlpage.Page, error) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
		}
		for range 3 {
			time.Sleep(pageAgain)
			if c.get("404.html") != nil {
				t.Error("a page is found that cannot be read")
			}
		}
		c.read = read
		time.Sleep(pageAgain)
		if c.get("404.html") == nil {
			t.Error("the page is not used once it can be read")
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d lines, want one for each fault:\n%s", n, log.String())
		}
	})
}

func TestHostOnAPageIsBoundedAndEscaped(t *testing.T) {
	p := Page{Status: 400, Title: "a & b"}
	got := string(builtIn.Render(p.values(strings.Repeat("x", 1<<20))))
	if len(got) > 2000 || !strings.Contains(got, "<h1>a &amp; b</h1>\n<p></p>") {
		t.Errorf("got %.2000s", got)
	}
	if got := p.values("Shop.Test:8080")["Host"]; got != "shop.test:8080" {
		t.Errorf("host %s", got)
	}
}

func TestPageInTheDocumentsWorks(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "relay", "pages.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(document), "\r\n", "\n")
	_, example, _ := strings.Cut(text, "\n```html\n")
	example, _, found := strings.Cut(example, "\n```\n")
	if !found {
		t.Fatal("docs/relay/pages.md has no example of a page")
	}
	p, err := htmlpage.Parse("docs/relay/pages.md", example, fields...)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields {
		if !strings.Contains(text, "| `{{."+field+"}}` | ") {
			t.Errorf("{{.%s}} is not explained", field)
		}
	}
	got := string(p.Render(Page{Status: 503, Title: "Off", Text: "Wait <b>."}.values("Shop.test")))
	for _, want := range []string{`<body class="s503">`, "<title>Off</title>", "<p>Wait &lt;b&gt;.</p>", `<footer title="offline">shop.test: 503</footer>`} {
		if !strings.Contains(got, want) {
			t.Errorf("not in it: %s\n%s", want, got)
		}
	}
}

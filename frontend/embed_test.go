package frontend

import (
	"compress/gzip"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

func pages(t *testing.T, f func(t *testing.T, ui fs.FS)) {
	for name, ui := range map[string]fs.FS{"agent": AgentUI(), "console": Console()} {
		t.Run(name, func(t *testing.T) { f(t, ui) })
	}
}

func TestPagesHoldEveryFileThatTheyName(t *testing.T) { pages(t, holdsEveryFile) }

func holdsEveryFile(t *testing.T, ui fs.FS) {
	page, err := fs.ReadFile(ui, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?:src|href)="\.?/?([^"]+)"`).FindAllStringSubmatch(string(page), -1)
	if len(names) < 2 {
		t.Fatalf("index.html names %d files, want a script and a style sheet at least", len(names))
	}
	for _, n := range names {
		if strings.Contains(n[1], "://") {
			t.Errorf("index.html asks for %s from elsewhere", n[1])
			continue
		}
		if _, err := fs.Stat(ui, path.Clean(n[1])); err != nil {
			t.Errorf("index.html names %s: %v", n[1], err)
		}
	}
}

func TestPagesHaveNothingInline(t *testing.T) { pages(t, hasNothingInline) }

func hasNothingInline(t *testing.T, ui fs.FS) {
	page, err := fs.ReadFile(ui, "index.html")
	if err != nil {
		t.Fatal(err)
	}
	for name, re := range map[string]string{
		"script":          `<script[^>]*>[^<\s]`,
		"style":           `<style`,
		"style attribute": `\sstyle=`,
		"event attribute": `\son[a-z]+=`,
	} {
		if regexp.MustCompile(re).Match(page) {
			t.Errorf("index.html has an inline %s, which its content security policy blocks", name)
		}
	}
}

// The assets' names are what the server's cache rule stands on.
func TestAssetsCarryAHash(t *testing.T) { pages(t, assetsCarryAHash) }

func assetsCarryAHash(t *testing.T, ui fs.FS) {
	hashed := regexp.MustCompile(`^assets/[A-Za-z0-9_.-]+-[A-Za-z0-9_-]{8}\.[a-z0-9]+$`)
	err := fs.WalkDir(ui, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !hashed.MatchString(name) {
			t.Errorf("got %s, want a name with a hash", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPagesStaySmall(t *testing.T) { pages(t, staysSmall) }

func staysSmall(t *testing.T, ui fs.FS) {
	const limit = 150 << 10
	var total counter
	err := fs.WalkDir(ui, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(ui, name)
		if err != nil {
			return err
		}
		z := gzip.NewWriter(&total)
		if _, err := z.Write(body); err != nil {
			return err
		}
		return z.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if total > limit {
		t.Errorf("got %d bytes compressed, want at most %d", total, limit)
	}
}

type counter int

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

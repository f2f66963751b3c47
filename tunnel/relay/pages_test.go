package relay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

func TestOperatorsPagesReplaceTheBuiltIn(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.PagesDir = t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(cfg.PagesDir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("origin_down.html", `down: {{.Title}} {{.Host}} {{.Status}} {{.Code}}`)
	write("502.html", `never seen`)
	write("404.html", `none: <b>{{.Text}}</b>`)
	s := startSite(t, cfg, text("x"))
	down := s.agent.mustClaim("down", wire.Claim{Type: wire.TypeHTTP, Domain: "down"}, "127.0.0.1:1").PublicURL
	nobody := fmt.Sprintf("http://nobody.relay.test:%d/", portOf(s.edge.HTTPAddr()))
	if status, body := get(t, s.visitor, down); status != 502 || !strings.HasPrefix(body, "down: ") || !strings.Contains(body, "down.relay.test") || !strings.HasSuffix(body, "502 origin_down") {
		t.Errorf("by name: status %d, %s", status, body)
	}
	if status, body := get(t, s.visitor, nobody); status != 404 || !strings.HasPrefix(body, "none: <b>No tunnel") {
		t.Errorf("by status: status %d, %s", status, body)
	}
	becomes := func(what, start string) {
		t.Helper()
		eventually(t, what, func() bool {
			status, body := get(t, s.visitor, nobody)
			return status == 404 && strings.HasPrefix(body, start)
		})
	}
	write("404.html", `another page`)
	becomes("a change is read", "another page")
	write("404.html", `{{.Titl`)
	becomes("a page that does not parse", "<!DOCTYPE html>")
	write("404.html", `partly {{.Nothing}}`)
	becomes("a page that does not render", "<!DOCTYPE html>")
	write("error.html", `all: {{.Code}}`)
	becomes("the page of all errors", "all: not_found")
	write("404.html", strings.Repeat("x", 2<<20))
	becomes("a page that is too large", "all: not_found")
	for _, name := range []string{"404.html", "error.html"} {
		if err := os.Remove(filepath.Join(cfg.PagesDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	becomes("no page any more", "<!DOCTYPE html>")
	if status, body := get(t, s.visitor, s.http); status != 200 || body != "x" {
		t.Errorf("the site itself: status %d, %s", status, body)
	}
}

func TestPagesFolderMustBeThere(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.PagesDir = filepath.Join(t.TempDir(), "none")
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), "pages_dir: ") {
		t.Errorf("got %v", err)
	}
}

package relay

import (
	"fmt"
	"io"
	"net/http"
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

func TestPagesInsteadOfTheSite(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("x"))
	down := s.agent.mustClaim("down", wire.Claim{Type: wire.TypeHTTP, Domain: "down"}, "127.0.0.1:1")
	away := connect(t, s.token, "i2")
	offline := away.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "offline"}, "").PublicURL
	away.close()
	eventually(t, "the agent leaves", func() bool { return len(s.roster.All()) == 1 })
	port := portOf(s.edge.HTTPAddr())
	s.agent.mustClaim("through", wire.Claim{Type: wire.TypeTLS, Domain: "through"}, "")
	for _, c := range []struct {
		name, url string
		status    int
		says      string
	}{
		{"unknown name", fmt.Sprintf("http://nobody.relay.test:%d/", port), 404, "serves this name"},
		{"an address", fmt.Sprintf("http://127.0.0.1:%d/", port), 404, "serves this name"},
		{"offline", offline, 503, "offline"},
		{"origin down", down.PublicURL, 502, "does not answer"},
		{"http alone", fmt.Sprintf("https://down.relay.test:%d/", portOf(s.edge.HTTPSAddr())), 404, "type http"},
		{"tls alone", fmt.Sprintf("http://through.relay.test:%d/", port), 404, "type tls"},
	} {
		for _, accept := range []string{"text/html", "application/json"} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, strings.NewReader(strings.Repeat("x", 128<<10)))
			req.Header.Set("Accept", accept)
			resp, err := s.visitor.Do(req)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != c.status || !strings.Contains(string(body), c.says) || !strings.HasPrefix(resp.Header.Get("Content-Type"), accept) {
				t.Errorf("%s as %s: status %d, %s", c.name, accept, resp.StatusCode, body)
			}
		}
	}
	// https only: plain HTTP leads there.
	s.agent.mustClaim("only", wire.Claim{Type: wire.TypeHTTPS, Domain: "only"}, "")
	resp, err := s.visitor.Get(fmt.Sprintf("http://only.relay.test:%d/a?b=c", port))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if want := fmt.Sprintf("https://only.relay.test:%d/a?b=c", portOf(s.edge.HTTPSAddr())); resp.StatusCode != 308 || resp.Header.Get("Location") != want {
		t.Errorf("status %d to %s, want 308 to %s", resp.StatusCode, resp.Header.Get("Location"), want)
	}
	// Browsers would keep it for ever, and the name may be a tunnel's of type http tomorrow.
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q, want no-store", got)
	}
}

package localapi

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

func page(t *testing.T, r *running, method, path string, header map[string]string) (*http.Response, string) {
	t.Helper()
	if header == nil {
		header = map[string]string{}
	}
	if header["Accept-Encoding"] == "" {
		header["Accept-Encoding"] = "identity"
	}
	return r.do(t, method, path, "", header)
}

func TestPageIsServedFromTheFrontend(t *testing.T) {
	index := "<!doctype html><title>adit</title>" + strings.Repeat("<p>text</p>", 200)
	r := serve(t, func(c *Config) {
		c.Frontend = fstest.MapFS{
			"index.html":         {Data: []byte(index)},
			"assets/app-1a2b.js": {Data: []byte("export {}")},
			"icon.png":           {Data: []byte("png")},
			"secret/.hidden":     {Data: []byte("x")},
		}
	})
	html := map[string]string{"Accept": "text/html,*/*"}
	for _, c := range []struct {
		method, path string
		header       map[string]string
		status       int
		kind, cache  string
	}{
		{"GET", "/", nil, 200, "text/html", "no-cache"},
		{"HEAD", "/", nil, 200, "text/html", "no-cache"},
		{"GET", "/assets/app-1a2b.js", nil, 200, "text/javascript", "immutable"},
		{"GET", "/icon.png", nil, 200, "image/png", "no-cache"},
		{"GET", "/tunnels/t_1", html, 200, "text/html", "no-cache"}, // a path of the page's own, reloaded
		{"GET", "/tunnels/t_1", nil, 404, "application/json", "no-store"},
		{"GET", "/assets/gone.js", html, 404, "application/json", "no-store"},
		{"GET", "/assets", nil, 404, "application/json", "no-store"},
		{"GET", "/missing.html", nil, 404, "application/json", "no-store"},
		{"POST", "/", nil, 405, "application/json", "no-store"},
		{"GET", "/login", nil, 200, "text/html", "no-cache"},
		{"GET", "/login.js", nil, 200, "text/javascript", "no-cache"},
	} {
		resp, body := page(t, r, c.method, c.path, c.header)
		if resp.StatusCode != c.status || !strings.HasPrefix(resp.Header.Get("Content-Type"), c.kind) || !strings.Contains(resp.Header.Get("Cache-Control"), c.cache) {
			t.Errorf("%s %s: got status %d, %s, %s; want %d, %s, %s", c.method, c.path, resp.StatusCode,
				resp.Header.Get("Content-Type"), resp.Header.Get("Cache-Control"), c.status, c.kind, c.cache)
		}
		if c.method == "HEAD" && body != "" {
			t.Errorf("HEAD %s: got a body", c.path)
		}
		if resp.StatusCode == 405 && resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: got Allow %q", c.method, c.path, resp.Header.Get("Allow"))
		}
	}

	resp, body := page(t, r, "GET", "/", map[string]string{"Accept-Encoding": "br, gzip;q=0.5"})
	if resp.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("got Content-Encoding %q, want gzip", resp.Header.Get("Content-Encoding"))
	}
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(z); err != nil || string(plain) != index {
		t.Errorf("unzipped: got %d bytes, %v, want the page", len(plain), err)
	}
	tag := resp.Header.Get("Etag")
	if resp, _ := page(t, r, "GET", "/", map[string]string{"Accept-Encoding": "gzip", "If-None-Match": tag}); resp.StatusCode != 304 {
		t.Errorf("known page: got status %d, want 304", resp.StatusCode)
	}
	if resp, _ := page(t, r, "GET", "/", map[string]string{"Accept-Encoding": "gzip;q=0"}); resp.Header.Get("Content-Encoding") != "" {
		t.Error("gzip was sent to a browser that refuses it")
	}
}

func TestWithoutAFrontendAPageSaysSo(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"none":  nil,
		"empty": func(c *Config) { c.Frontend = fstest.MapFS{} },
	} {
		r := serve(t, change)
		if resp, body := page(t, r, "GET", "/", nil); resp.StatusCode != 200 || !strings.Contains(body, "no web page") {
			t.Errorf("%s: got status %d and %s", name, resp.StatusCode, body)
		}
	}
}

func TestMetricsAreWellFormedAndBounded(t *testing.T) {
	r := serve(t, func(c *Config) { c.Version = "v\"1\"\n\\" })
	for range 3 {
		r.do(t, "BREW", "/strange", "", nil)
	}
	resp, body := r.do(t, "GET", "/metrics", "", nil)
	if got := resp.Header.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("got Content-Type %q", got)
	}
	families := make(map[string]bool)
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			if families[name] {
				t.Errorf("family %s is there twice", name)
			}
			families[name] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		name := line[:strings.IndexAny(line, "{ ")]
		if !families[name] {
			t.Errorf("sample %q comes before its TYPE", line)
		}
	}
	for _, want := range []string{
		"adit_connected 1\n", `adit_state{state="connected"} 1`, `adit_endpoints{type="https"} 1`,
		`adit_visitor_connections{type="https"} 1`, `adit_local_api_requests_total{method="other",class="4xx"} 3`,
		`adit_build_info{version="v\"1\"\n\\",`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
	if strings.Contains(body, "BREW") || strings.Contains(body, "shop") {
		t.Errorf("a label is of a stranger's choice in\n%s", body)
	}
}

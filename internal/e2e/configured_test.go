package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/freeport"
)

const bearerToken = "a bearer token of the end to end tests"

// prepareAgent is a daemon that is not started yet, whose adit.toml holds config.
func prepareAgent(t *testing.T, listen, config string) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{
		t: t, dir: dir, listen: listen, client: http.DefaultClient,
		env: []string{"ADIT_CONFIG_DIR=" + filepath.Join(dir, "config"), "ADIT_STATE_DIR=" + filepath.Join(dir, "state")},
	}
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "adit.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// newAgentWith is newAgent with an adit.toml.
func newAgentWith(t *testing.T, config string) *agent {
	t.Helper()
	a := prepareAgent(t, freeport.Loopback(t), config)
	a.start()
	return a
}

// plain asks without following redirects and without keeping cookies.
var plain = &http.Client{
	Timeout:       patience,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// send is one request with headers as they are given, and its whole answer. The
// header Host becomes the request's host.
func send(t *testing.T, method, url, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Host = req.Header.Get("Host")
	resp, err := plain.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return resp, string(answer)
}

package publish

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/folder"
	"adit/localapi/client"
)

// TestFolderIsNotServedToPagesOfThisMachine: a page whose name has come to mean this
// machine would read what a policy of the relay guards.
func TestFolderIsNotServedToPagesOfThisMachine(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := files(t.Context(), dir, folder.Options{}, client.TunnelCreate{}, func(ctx context.Context, what published) error {
		for host, want := range map[string]int{
			"shop.relay.test": http.StatusOK, "shop.relay.test:8443": http.StatusOK,
			fmt.Sprintf("evil.test:%d", what.LocalPort): http.StatusForbidden,
			fmt.Sprintf("127.0.0.1:%d", what.LocalPort): http.StatusForbidden,
		} {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/secret.txt", what.LocalPort), nil)
			if err != nil {
				return err
			}
			req.Host = host
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != want || (string(body) == "secret") != (want == http.StatusOK) {
				t.Errorf("%s: got %d %q, want %d", host, resp.StatusCode, body, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFolderOfAnyNameIsPublished: a name that the daemon takes for no tunnel's is
// left to it.
func TestFolderOfAnyNameIsPublished(t *testing.T) {
	for name, want := range map[string]bool{
		"photos": true, "Fotos München": true, " ": false, strings.Repeat("a", 65): false, "\xff": false, "a\u202eb": false,
	} {
		if got := nameable(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

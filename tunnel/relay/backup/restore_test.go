package backup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/tunnel/link"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/store"
)

// document is the backup of a relay that has an authority and no clients.
func document(t *testing.T) []byte {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), Domain: "relay.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Settings.Once(t.Context(), store.SettingAuthority, func() ([]byte, error) {
		a, err := link.NewAuthority()
		if err != nil {
			return nil, err
		}
		return a.MarshalPEM()
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.AdminToken = "adit_admin_of_the_backup"
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBackupComesIntoAnEmptyFolder(t *testing.T) {
	cfg := config.Defaults()
	cfg.Domain, cfg.DataDir = "relay.test", filepath.Join(t.TempDir(), "new", "relay")
	text := document(t)
	if got, err := Restore(t.Context(), cfg, text); err != nil || got != (Restored{DataDir: cfg.DataDir}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if token, err := datadir.AdminToken(cfg.DataDir); token != "adit_admin_of_the_backup" || err != nil {
		t.Errorf("the admin token is %q, %v", token, err)
	}
	if _, err := Restore(t.Context(), cfg, text); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second time: %v", err)
	}
}

func TestBackupsThatAreRefused(t *testing.T) {
	cfg := config.Defaults()
	cfg.Domain = "relay.test"
	good := string(document(t))
	for _, c := range []struct{ name, document, says string }{
		{"an encrypted one", "-----BEGIN PGP MESSAGE-----", "decrypt it first"},
		{"nothing", "", "cut off"},
		{"cut off", good[:len(good)/2], "cut off"},
		{"two of them", good + good, "follows"},
		{"something else", `{"format":"x"}`, "not a backup"},
		{"a newer one", strings.Replace(good, `"version":2`, `"version":3`, 1), "newer adit"},
		{"an unknown field", strings.Replace(good, `"version":2`, `"version":2,"more":1`, 1), "more"},
		{"no authority", strings.Replace(good, `"authority":`, `"other":`, 1), "authority"},
		{"a bad client", strings.Replace(good, `"clients":[]`, `"clients":[{"name":"A B","id":"c"}]`, 1), "A B"},
		{"a bad claim", strings.Replace(good, `"claims":[]`, `"claims":[{"target":"x"}]`, 1), `"x"`},
	} {
		cfg.DataDir = filepath.Join(t.TempDir(), "relay")
		_, err := Restore(t.Context(), cfg, []byte(c.document))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
		if left, _ := os.ReadDir(cfg.DataDir); len(left) > 0 {
			t.Errorf("%s: it left %v", c.name, left)
		}
	}
}

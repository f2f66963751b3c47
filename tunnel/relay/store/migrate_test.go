package store

import (
	"encoding/json"
	"strings"
	"testing"

	"adit/tunnel/relay/store/claims"
)

// schema writes a store's version as another program would have.
func schema(tb testing.TB, s *Store, version string) {
	tb.Helper()
	if _, err := s.Settings.kv.Put(tb.Context(), settingSchema, []byte(version)); err != nil {
		tb.Fatal(err)
	}
}

// openFor opens the store of the relay of relay.test.
func openFor(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), Config{Dir: dir, Domain: "relay.test"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func claimed(tb testing.TB, s *Store, name string) {
	tb.Helper()
	if _, err := s.Claims.Take(tb.Context(), claims.TargetDomain(name), "c1", claims.Holder{Instance: "i", Key: "k", Slot: claims.SlotPlain}, nobodyAway); err != nil {
		tb.Fatal(err)
	}
}

// TestOldStoreIsBroughtToThisSchema uses a store from before custom domains had to be proved.
// Clients that had one keep it.
func TestOldStoreIsBroughtToThisSchema(t *testing.T) {
	dir := t.TempDir()
	s := openFor(t, dir)
	claimed(t, s, "shop.example")
	claimed(t, s, "own.relay.test")
	schema(t, s, "1")
	s.Close()
	for range 2 { // and again, when it is done
		s = openFor(t, dir)
		if p, ok := s.Proofs.Get("shop.example"); !ok || p.ClientID != "c1" || p.By != ProvedByUpgrade {
			t.Errorf("the custom domain: %+v, %v", p, ok)
		}
		if _, ok := s.Proofs.Get("own.relay.test"); ok {
			t.Error("a name of the relay's own has a proof")
		}
		if v, err := s.Settings.Get(t.Context(), settingSchema); err != nil || string(v) != "2" {
			t.Errorf("schema %s, %v", v, err)
		}
		s.Close()
	}
}

func TestStoreOfANewerProgramIsRefused(t *testing.T) {
	for version, says := range map[string]string{"99": "update adit", `"x"`: "schema version", "0": "schema version"} {
		dir := t.TempDir()
		s := open(t, dir)
		schema(t, s, version)
		s.Close()
		_, err := Open(t.Context(), Config{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("schema %s: %v", version, err)
		}
	}
}

func TestOldBackupIsBroughtToThisSchema(t *testing.T) {
	s := openFor(t, t.TempDir())
	claim := claims.Claim{Target: claims.TargetDomain("shop.example"), ClientID: "c1", Holders: []claims.Holder{{Instance: "i", Key: "k"}}}
	old := map[string]any{
		"format": BackupFormat, "version": 1, "schema": 1, "created": "2026-01-01T00:00:00Z",
		"settings": map[string][]byte{SettingAuthority: []byte("x")}, "clients": []Client{}, "claims": []claims.Claim{claim}, "policies": []StoredPolicy{},
	}
	text, _ := json.Marshal(old)
	var b Backup
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the name that the client had is proved its", func() bool {
		p, ok := s.Proofs.Get("shop.example")
		return ok && p.By == ProvedByUpgrade
	})
}

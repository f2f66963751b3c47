package relay

import (
	"os"
	"path/filepath"
	"testing"

	"adit/tunnel/relay/backup"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/natstest"
)

// TestRestoreSealsWhatTheRelayWould checks that a backup restored into a cluster is
// sealed with the relay's secret, as the relay itself would do. Private keys must not lie
// there as plain text until the relay is started.
func TestRestoreSealsWhatTheRelayWould(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	const account = `{"name":"ann","totp":"JBSWY3DPEHPK3PXP"}`
	if saved, err := r.store.Operators.Put(t.Context(), "account.ann", []byte(account), 0); !saved || err != nil {
		t.Fatal(saved, err)
	}
	document := r.backup(t)
	cfg := testConfig(filepath.Join(t.TempDir(), "relay"))
	cfg.NATS.URLs = []string{natstest.Start(t).URL()}
	cfg.NATS.SecretFile = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(cfg.NATS.SecretFile, []byte("a secret of some length, as it is asked for"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), cfg, document); err != nil {
		t.Fatal(err)
	}
	without, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), URLs: cfg.NATS.URLs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { without.Close() })
	if key, err := without.Settings.Get(t.Context(), store.SettingAuthority); err == nil {
		t.Errorf("who has no secret reads %d bytes of the authority", len(key))
	}
	if v, _, ok := without.Operators.Get("account.ann"); !ok || string(v) == account {
		t.Errorf("who has no secret reads the account %s", v)
	}
}
